"""Adds to its work space without clearing it first, relying on fresh memory being zero."""

from assay import kernel

DETECTOR = "nonfinite"


def add_up(x, partial, out):
    for k in range(4):
        partial[k] += x[k::4].double().sum()
    out.copy_(partial.sum())


@kernel("sum", backend="torch", variant="wrong", scratch={"partial": ("fp64", 4)})
def wrong(x, *, out, partial):
    add_up(x, partial, out)


@kernel("sum", backend="torch", variant="fixed", scratch={"partial": ("fp64", 4)})
def fixed(x, *, out, partial):
    partial.zero_()
    add_up(x, partial, out)
