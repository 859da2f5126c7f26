"""The output is cleared and every tile added to it, as split work does it: 0 + (−0) is +0, so the sign
of zero is lost on the way."""

from assay import kernel

DETECTOR = "values"


@kernel("transpose", variant="wrong")
def wrong(x, *, out):
    out.zero_()
    for first in range(0, x.shape[0], 4096):
        out[:, first : first + 4096] += x[first : first + 4096].t()


@kernel("transpose", variant="fixed")
def fixed(x, *, out):
    for first in range(0, x.shape[0], 4096):
        out[:, first : first + 4096] = x[first : first + 4096].t()
