"""Quantisation to MXINT8 in CUDA C++: 16-byte vectors, a block's largest value found among neighbouring threads."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype, vector_width

source = Source("kernel.cu")


@kernel(
    "mx_quantize",
    tune={"threads": [128, 256, 512], "vectors": [1, 2, 4]},
    expects={"spills": 0, "widest_global_load": 128},
)
def mx_quantize(x, *, block, elements, scales, threads=256, vectors=4):
    (rows, cols), blocks, T = x.shape, scales.shape[1], ctype(x)
    width = vector_width(x, elements)
    if width > 1 and block in (16, 32, 64, 128) and cols % block == 0:
        count = x.numel() // width
        source[f"mx_quantize<{T}, {block}, {vectors}>"](
            cdiv(count, threads * vectors), threads, x, elements, scales, count
        )
    else:
        grid = min(cdiv(rows * blocks, threads // 32), 2**31 - 1)
        source[f"mx_quantize_any<{T}>"](grid, threads, x, elements, scales, rows, cols, block, blocks)
