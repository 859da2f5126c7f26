"""The tensors start on 16-byte boundaries, so rows are read four floats at a time; but with 1001 columns the
second row does not start on one."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, vector_width

DETECTOR = "launch"
NEEDS = "gpu"
source = Source("vectors_across_rows.cu")


def run(x, scale, out, width):
    rows, cols = x.shape
    if out.numel():
        across = cdiv(cols, 256 * width)
        source[f"col_scale<{width}>"](rows * across, 256, x, scale, out, cols, across)


@kernel("col_scale", variant="wrong")
def wrong(x, scale, *, out):
    run(x, scale, out, vector_width(x, scale, out))


@kernel("col_scale", variant="fixed")
def fixed(x, scale, *, out):
    width = vector_width(x, scale, out)
    run(x, scale, out, width if x.shape[1] % width == 0 else 1)
