"""The integer linear layer in CUDA C++: codes go through registers to the tensor cores and are scaled once a group."""

import numpy as np

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype

source = Source("kernel.cu")
WARPS = 132 * 16
"""Where rows are few, warps divide the depth until there are so many. Where they are many and x fits, so many are
started, or twice as many if registers allow, and each goes on to further rows."""
ROOM = 32768
"""Bytes of shared memory for x."""


@kernel(
    "int_linear",
    tune={"rows": [2, 4], "ahead": [1, 2, 4], "warps": [4, 8, 16]},
    fits="rows * ahead <= 8",
    expects={"spills": 0, "widest_global_load": 128, "uses": "HMMA"},
)
def int_linear(x, codes, scales, bias, *, bits, group, out, rows=2, ahead=2, warps=0):
    (m, k), (n, count), T = x.shape, scales.shape, ctype(x)
    if m == 0 or n == 0:
        return
    power = group.bit_length() - 1
    whole = group >= k  # one scale for a row
    regular = whole or group == 1 << power
    eighth = 9 - (bits.bit_length() - 1)  # 64 bytes of codes are 2^eighth of them
    aligned = x.data_ptr() % 16 == 0 and codes.data_ptr() % 16 == 0 and regular and 0 < k < 2**25
    if aligned and m <= 4 and k * bits % 128 == 0 and (whole or power >= eighth - 2):
        fine = not whole and power < eighth
        shift = 31 if whole else power - eighth + 2 * fine
        MT = 1 if m == 1 else 2 if m == 2 else 4
        # Within 64 registers blocks of 16 warps fill a multiprocessor; where more are needed, smaller ones fit better.
        warps = warps or (16 if MT == 1 and T != "float" and not (fine and bits == 4) else 8)
        chunks, vectors = cdiv(k * bits, 4096), 16 // bits * MT * (3 if T == "float" else 1)
        share = 1
        while share < min(warps, chunks) and cdiv(n, rows) * share < WARPS:
            share *= 2
        step = share * ahead
        slab = min(cdiv(chunks, step), max(1, ROOM // (512 * vectors * step))) * step
        small = MT == 1 and T != "float" and rows * ahead <= 4 and not (fine and bits == 4)
        blocks, stays = cdiv(n, warps // share * rows), share == 1 and slab >= chunks
        if stays:
            blocks = min(blocks, (2 if small else 1) * WARPS // warps)
        flags = f"{fine}, {stays}".lower()
        source[f"int_linear_few<{T}, {bits}, {flags}, {MT}, {rows // 2}, {ahead}>"](
            blocks,
            32 * warps,
            x,
            codes,
            scales,
            bias,
            out,
            n,
            k,
            *map(np.int32, (m, count, shift, slab, share)),
            shared=max(512 * vectors * slab, 64 * warps * MT),
        )
    elif aligned and k % 8 == 0 and (whole or power >= 5):
        NT = 1 if m <= 8 else 2 if m <= 16 else 4 if m <= 32 else 8
        shift = np.int32(31 if whole else power)
        grid = cdiv(n, 128), min(cdiv(m, 8 * NT), 65535)
        source[f"int_linear_tiles<{T}, {bits}, {NT}>"](
            grid, 128, x, codes, scales, bias, out, m, n, k, np.int32(count), shift
        )
    else:
        grid = cdiv(n, 8), min(cdiv(m, 8), 65535)
        source[f"int_linear_any<{T}, {bits}>"](grid, 256, x, codes, scales, bias, out, m, n, k, group, count)
