"""Transposition in CUDA C++ with 16-byte loads and stores: squares are turned in registers, tiles in shared memory."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype, vector_width

source, scalar = Source("vector.cu"), Source("kernel.cu")


@kernel(
    "transpose",
    tune={"down": [8, 16], "across": [8, 16, 32], "order": ["auto", "along", "down"]},
    fits="down <= across and down * across <= 256",
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 48},
)
def transpose(x, *, out, down=16, across=16, order="auto"):
    """A tile has `down` × `across` squares: 128 × 128 elements of 16 bits, 64 × 64 of fp32. Neighbouring blocks go
    along the rows of x or down its columns: down for 16 bits, along for fp32, as measured."""
    (rows, cols), stride, T, N = x.shape, x.stride(0), ctype(x), vector_width(x, out)
    if N == 1 or rows % N or cols % N or stride % N:  # a vector would be cut, or lie across a 16-byte boundary
        scalar[f"tiled<{T}, 32, 1>"](cdiv(rows, 32) * cdiv(cols, 32), (32, 8), x, out, rows, cols, stride)
        return
    along = x.element_size() == 4 if order == "auto" else order == "along"
    tiles = cdiv(rows, down * N) * cdiv(cols, across * N)
    name = f"turned<{T}, {down}, {across}, {str(along).lower()}>"
    source[name](tiles, down * across, x, out, rows, cols, stride)
