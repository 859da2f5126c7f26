"""MXINT8 to floats in CUDA C++: 16 bytes written per thread and step, several steps in flight."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype, vector_width

source = Source("kernel.cu")


@kernel(
    "mx_dequantize",
    tune={"threads": [128, 256, 512], "vectors": [1, 2, 4, 8]},
    expects={"spills": 0, "widest_global_store": 128, "avoids": "I2F"},
)
def mx_dequantize(elements, scales, *, block, out, threads=256, vectors=4):
    (rows, cols), blocks, T = elements.shape, scales.shape[1], ctype(out)
    width, shift = vector_width(out, elements), block.bit_length() - 1
    if width > 1 and block == 1 << shift and block % width == 0 and cols % block == 0:
        count = out.numel() // width
        source[f"mx_dequantize<{T}, {vectors}>"](
            cdiv(count, threads * vectors), threads, elements, scales, out, count, shift
        )
    else:
        grid = min(cdiv(rows * blocks, threads // 32), 2**31 - 1)
        source[f"mx_dequantize_any<{T}>"](grid, threads, elements, scales, out, rows, cols, block, blocks)
