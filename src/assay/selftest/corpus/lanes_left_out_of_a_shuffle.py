"""A warp adds up its lanes by shuffles among those that are active just then (`__activemask`), which need not be all
that took the branch: right as long as the warp stays together."""

from assay import Axis, Tensor, kernel, op
from assay.backends.cuda import Source

DETECTOR = "race or unstable or values"
NEEDS = "gpu"
DTYPE = "fp32"
source = Source("lanes_left_out_of_a_shuffle.cu")


@op(
    axes={"rows": Axis(typical=4096), "cols": Axis(min=1, max=4096, typical=768)},
    inputs={"x": Tensor("rows", "cols", range=(-100.0, 100.0), specials=())},
    outputs={"out": Tensor("rows")},
    independent="rows",
)
def row_sums(x):
    return x.sum(-1)


@kernel("row_sums", variant="wrong", dtypes=["fp32"])
def wrong(x, *, out):
    source["row_sums<false>"](x.shape[0], 32, x, out, x.shape[1])


@kernel("row_sums", variant="fixed", dtypes=["fp32"])
def fixed(x, *, out):
    source["row_sums<true>"](x.shape[0], 32, x, out, x.shape[1])
