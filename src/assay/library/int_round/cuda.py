"""Rounding to integers with a scale in CUDA C++: a block for a row, or several for each of few long ones."""

import numpy as np

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype, vector_width
from assay.library.int_round.op import LARGEST_SCALE

source = Source("kernel.cu")
PARTS = 64


@kernel(
    "int_round",
    tune={"threads": [128, 256, 512], "span": [8192, 16384, 32768]},
    scratch={"largest": ("int32", "rows", PARTS)},
    expects={"spills": 0, "widest_global_load": 128},
)
def int_round(x, *, bits, out, largest, threads=256, span=16384):
    (rows, cols), T = x.shape, ctype(x)
    N = vector_width(x, out) if cols % vector_width(x, out) == 0 else 1
    by = np.float32(2 ** (bits - 1) - 1), np.float32(LARGEST_SCALE[bits])
    if rows == 0 or cols == 0:
        return
    if cols <= span:
        source[f"int_round<{T}, {N}>"](rows, threads, x, out, cols, *by)
        return
    span = max(span, cdiv(cdiv(cols, PARTS), 8) * 8)
    parts = cdiv(cols, span)
    source[f"int_round_largest<{T}, {N}>"](rows * parts, threads, x, largest, cols, parts, span)
    source[f"int_round_parts<{T}, {N}>"](rows * parts, threads, x, largest, out, cols, parts, span, *by)
