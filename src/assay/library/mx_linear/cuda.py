"""The packed linear layer in CUDA C++: codes through the tensor cores, scaled once per 32; few rows of x streamed."""

import numpy as np

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype

source = Source("kernel.cu")
STAGES = 3  # as in kernel.cu


@kernel(
    "mx_linear",
    tune={"warps": [2, 4, 8], "blocks": [264, 396, 528]},
    scratch={"partial": ("fp32", 135168)},
    expects={"spills": 0, "widest_global_load": 128, "uses": "HMMA"},
)
def mx_linear(x, elements, scales, bias, *, block, out, partial, warps=8, blocks=264):
    (m, k), (n, count), T = x.shape, scales.shape, ctype(x)
    if m == 0:
        return
    shift = block.bit_length() - 1
    # RT: tiles of 16 rows of the weight that a warp has; two where the work on x is worth sharing. NT: of 8 rows of x.
    NT = 1 if m <= 8 else 2 if m <= 16 else 4
    RT = 2 if NT > 1 or T == "float" else 1
    aligned = x.data_ptr() % 16 == 0 and elements.data_ptr() % 16 == 0 and k % 16 == 0
    if not aligned or not 0 < k < 2**31 or block < 32 or block != 1 << shift or n < 16 * RT:
        grid = cdiv(n, 8), min(cdiv(m, 8), 65535)
        source[f"mx_linear_any<{T}>"](grid, 256, x, elements, scales, bias, out, m, n, k, block, count)
    elif m > 32:
        grid = cdiv(n, 128), min(cdiv(m, 64), 65535)
        source[f"mx_linear_many<{T}>"](grid, 128, x, elements, scales, bias, out, m, n, k, count, shift)
    else:
        chunk = 256 // RT
        tiles, chunks = cdiv(n, 16 * RT), cdiv(k, chunk)
        warps = min(warps, chunks)
        # More blocks where there are few rows. Their sums fit `partial`: 132 tiles of 32 rows, for 32 rows of x.
        parts = max(1, min(132 // tiles, chunks // warps))
        side_by_side = block == 32 and count % 4 == 0 and scales.data_ptr() % 4 == 0
        shared = warps * 16 * RT * (STAGES * (chunk + 32) + 4 * m)
        source[f"mx_linear_few<{T}, {RT}, {NT}>"](
            (min(tiles, blocks), parts), 32 * warps, x, elements, scales, bias, out, partial, n, k,
            *map(np.int32, (m, count, shift, cdiv(chunks, parts))), side_by_side, shared=shared,
        )  # fmt: skip
        if parts > 1:
            source[f"mx_linear_sum<{T}>"](cdiv(m * n, 256), 256, partial, bias, out, parts, m, n)
