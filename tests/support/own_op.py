"""An op of a user's own, and a kernel of it, as texts to write into files."""

OP = """
import torch
from assay import Axis, Tensor, kernel, op

@op(axes={"rows": Axis(typical=64), "cols": Axis(min=1, typical=64)},
    inputs={"x": Tensor("rows", "cols", range=(-9, 9))},
    outputs={"out": Tensor("rows")}, magnitude=lambda x: x.abs().sum(-1), terms=lambda w: w.cols, dtypes=("fp32",))
def row_sum(x):
    return x.sum(-1)
"""
KERNEL = """
@kernel("row_sum", backend="torch")
def {name}(x, *, out):
    out.copy_(x.double().sum(-1))
"""
