"""Values beyond the declared range are only reported: whatever happens there decides nothing."""

import assay
from assay.record import Status

TABLE = """
from assay import Axis, Tensor, kernel, op

@op(axes={"n": Axis(typical=64)}, inputs={"x": Tensor("n", range=(-4, 4), specials=())}, outputs={"out": Tensor("n")},
    dtypes=("fp32",))
def from_table(x):
    return x.new_tensor([0.0, 1.0, 4.0, 9.0, 16.0])[x.abs().long()]

@kernel("from_table", backend="torch")
def squared(x, *, out):
    out.copy_(x.abs().long() ** 2)
"""


def test_a_reference_may_raise_beyond_the_range(write):
    (record,) = assay.check(write("table.py", TABLE), workloads=6)
    assert record.status is Status.PASS, record.reason
