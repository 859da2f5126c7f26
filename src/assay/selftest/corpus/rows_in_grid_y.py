"""One block per row along the grid's y axis, which ends at 65535; the refused launch goes unnoticed."""

import contextlib

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "unwritten"
NEEDS = "gpu"
source = Source("rows_in_grid_y.cu")


def run(x, scale, out, down):
    rows, cols = x.shape
    if out.numel():
        with contextlib.suppress(Exception):
            source["row_scale"]((cdiv(cols, 256), down), 256, x, scale, out, rows, cols)


@kernel("row_scale", variant="wrong")
def wrong(x, scale, *, out):
    run(x, scale, out, x.shape[0])


@kernel("row_scale", variant="fixed")
def fixed(x, scale, *, out):
    run(x, scale, out, min(65535, x.shape[0]))
