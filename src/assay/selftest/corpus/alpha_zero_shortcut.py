"""With alpha = 0 there is nothing to add, says BLAS, and x is not read; but 0 times NaN or infinity is NaN."""

import torch

from assay import kernel

DETECTOR = "nonfinite"


@kernel("axpy", variant="wrong")
def wrong(x, y, *, alpha, out):
    if alpha == 0:
        out.copy_(y)
    else:
        torch.add(y, x, alpha=alpha, out=out)


@kernel("axpy", variant="fixed")
def fixed(x, y, *, alpha, out):
    torch.add(y, alpha * x, out=out)
