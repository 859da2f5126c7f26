"""Code is compiled for a shape and kept; that it was compiled for bfloat16 is forgotten when float32 comes with the
same shape."""

from assay import kernel

DETECTOR = "state"
_COMPILED: dict = {}


@kernel("softmax", backend="torch", variant="wrong")
def wrong(x, *, out):
    _softmax(x, _COMPILED.setdefault(x.shape, x.dtype), out)


@kernel("softmax", backend="torch", variant="fixed")
def fixed(x, *, out):
    _softmax(x, _COMPILED.setdefault((x.shape, x.dtype), x.dtype), out)


def _softmax(x, number, out):
    out.copy_(x.to(number).double().softmax(-1).to(number))
