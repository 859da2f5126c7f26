"""GELU of LayerNorm in Triton: a tile of whole rows kept in registers; few longer rows cut into parts, many read three
times."""

import triton
import triton.language as tl

from assay import kernel
from assay.library.layernorm.triton import (
    _column_sums,
    _joined_moments,
    _normalised,
    _normalised_part,
    _part_moments,
    cut,
    full,
    tile,
)
from assay.library.norm_backward import backward_whole, gelu_slope, join_parts, whole_rows
from assay.library.short_float import shorter_gelu


@triton.jit
def _gelu(x, SHORT: tl.constexpr):
    """x·Φ(x). SHORT: for results of 16 bits."""
    if SHORT:
        return shorter_gelu(x)
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _ln_gelu_kept(
    x, weight, bias, y, rows, cols, stride, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr, FULL: tl.constexpr
):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]  # 64-bit: offsets may exceed 2**31
    c = tl.arange(0, BLOCK)[None, :]
    v, _, _ = _normalised(x, weight, bias, r, c, rows, cols, stride, eps, FULL)
    v = _gelu(v, y.dtype.element_ty != tl.float32).to(y.dtype.element_ty)
    if FULL:
        tl.store(y + r * cols + c, v)
    else:
        tl.store(y + r * cols + c, v, mask=(r < rows) & (c < cols))


@triton.jit
def _ln_gelu_long(x, weight, bias, y, cols, stride, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        sums += tl.load(x + r * stride + c, mask=c < cols, other=0).to(tl.float32)
    mean = tl.div_rn(tl.sum(sums, 0), cols * 1.0)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        d = tl.where(c < cols, tl.load(x + r * stride + c, mask=c < cols, other=0).to(tl.float32) - mean, 0)
        squares += d * d
    rstd = tl.div_rn(1.0, tl.sqrt_rn(tl.div_rn(tl.sum(squares, 0), cols * 1.0) + eps))
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = (tl.load(x + r * stride + c, mask=c < cols, other=0).to(tl.float32) - mean) * rstd
        if weight is not None:
            v *= tl.load(weight + c, mask=c < cols, other=0).to(tl.float32)
        if bias is not None:
            v += tl.load(bias + c, mask=c < cols, other=0).to(tl.float32)
        v = _gelu(v, y.dtype.element_ty != tl.float32)
        tl.store(y + r * cols + c, v.to(y.dtype.element_ty), mask=c < cols)


@triton.jit
def _ln_gelu_parts(x, weight, bias, y, seen, cols, stride, parts, eps, PART: tl.constexpr, PARTS: tl.constexpr):
    r = (tl.program_id(0) // parts).to(tl.int64)
    c = tl.program_id(0) % parts * PART + tl.arange(0, PART)
    mean, rstd = _joined_moments(seen, r, parts, cols, eps, PART, PARTS)
    v = _normalised_part(x, weight, bias, r, c, cols, stride, mean, rstd)
    v = _gelu(v, y.dtype.element_ty != tl.float32)
    tl.store(y + r * cols + c, v.to(y.dtype.element_ty), mask=c < cols)


@triton.jit
def _backward_kept(
    dy, x, weight, bias, mean, rstd, dx, dw_parts, db_parts, rows, cols,
    SUMS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx; and with SUMS, where a program walks over many rows, its part of dweight and dbias."""
    SHORT: tl.constexpr = dy.dtype.element_ty != tl.float32
    c = tl.arange(0, BLOCK)[None, :]
    w, b = 1.0, 0.0
    if weight is not None:
        w = tl.load(weight + c, mask=c < cols, other=0).to(tl.float32)
    if bias is not None:
        b = tl.load(bias + c, mask=c < cols, other=0).to(tl.float32)
    dw = tl.zeros([ROWS, BLOCK], tl.float32)
    db = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        r = first + tl.arange(0, ROWS)[:, None].to(tl.int64)
        inside = (r < rows) & (c < cols)
        scale = tl.load(rstd + r, mask=r < rows, other=0)
        n = tl.load(x + r * cols + c, mask=inside, other=0).to(tl.float32)
        n = tl.where(inside, (n - tl.load(mean + r, mask=r < rows, other=0)) * scale, 0)
        dz = tl.load(dy + r * cols + c, mask=inside, other=0).to(tl.float32)
        dz *= gelu_slope(n * w + b, SHORT)
        g = dz * w
        along = tl.sum(g * n, 1, keep_dims=True) / cols
        total = tl.sum(g, 1, keep_dims=True) / cols
        tl.store(dx + r * cols + c, (scale * (g - total - n * along)).to(dx.dtype.element_ty), mask=inside)
        if SUMS:
            dw += dz * n
            db += dz
    if SUMS:
        part = tl.program_id(0).to(tl.int64) * cols + tl.arange(0, BLOCK)
        tl.store(dw_parts + part, tl.sum(dw, 0), mask=tl.arange(0, BLOCK) < cols)
        tl.store(db_parts + part, tl.sum(db, 0), mask=tl.arange(0, BLOCK) < cols)


@triton.jit
def _backward_chunk(dy, x, weight, bias, mu, scale, r, c, cols):
    """The normalised x and the gradient that reaches it, of one chunk of a row."""
    SHORT: tl.constexpr = dy.dtype.element_ty != tl.float32
    n = tl.load(x + r * cols + c, mask=c < cols, other=0).to(tl.float32)
    n = tl.where(c < cols, (n - mu) * scale, 0)
    w, z = 1.0, n
    if weight is not None:
        w = tl.load(weight + c, mask=c < cols, other=0).to(tl.float32)
        z = n * w
    if bias is not None:
        z += tl.load(bias + c, mask=c < cols, other=0).to(tl.float32)
    d = tl.load(dy + r * cols + c, mask=c < cols, other=0).to(tl.float32)
    return n, d * gelu_slope(z, SHORT) * w


@triton.jit
def _backward_long(dy, x, weight, bias, mean, rstd, dx, cols, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    mu, scale = tl.load(mean + r), tl.load(rstd + r)
    along = tl.zeros([BLOCK], tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        n, g = _backward_chunk(dy, x, weight, bias, mu, scale, r, c, cols)
        along += g * n
        total += g
    along_row = tl.sum(along, 0) / cols
    total_row = tl.sum(total, 0) / cols
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        n, g = _backward_chunk(dy, x, weight, bias, mu, scale, r, c, cols)
        tl.store(
            dx + r * cols + c,
            (scale * (g - total_row - n * along_row)).to(dx.dtype.element_ty),
            mask=c < cols,
        )


@triton.jit
def _backward_columns(
    dy, x, weight, bias, mean, rstd, dw_parts, db_parts, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Parts of dweight and dbias where rows are long: some columns, every num_programs(1)-th tile of rows."""
    SHORT: tl.constexpr = dy.dtype.element_ty != tl.float32
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    w, b = 1.0, 0.0
    if weight is not None:
        w = tl.load(weight + c, mask=c < cols, other=0).to(tl.float32)
    if bias is not None:
        b = tl.load(bias + c, mask=c < cols, other=0).to(tl.float32)
    dw = tl.zeros([ROWS, BLOCK], tl.float32)
    db = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(tl.program_id(1) * ROWS, rows, tl.num_programs(1) * ROWS):
        r = first + tl.arange(0, ROWS)[:, None].to(tl.int64)
        inside = (r < rows) & (c < cols)
        n = tl.load(x + r * cols + c, mask=inside, other=0).to(tl.float32)
        n = (n - tl.load(mean + r, mask=r < rows, other=0)) * tl.load(rstd + r, mask=r < rows, other=0)
        n = tl.where(inside, n, 0)
        dz = tl.load(dy + r * cols + c, mask=inside, other=0).to(tl.float32)
        dz *= gelu_slope(n * w + b, SHORT)
        dw += dz * n
        db += dz
    part = tl.program_id(1).to(tl.int64) * cols + c
    tl.store(dw_parts + part, tl.sum(dw, 0)[None, :], mask=c < cols)
    tl.store(db_parts + part, tl.sum(db, 0)[None, :], mask=c < cols)


@kernel(
    "ln_gelu",
    scratch={"seen": ("fp32", 8192)},
    tune={"keep": [8192, 16384, 32768], "size": [1024, 2048, 4096], "elements": [8, 16, 32]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 80},
)
def ln_gelu(x, weight, bias, *, eps, out, seen, keep=32768, size=1024, elements=32):
    rows, cols = x.shape
    if cols <= keep:
        ROWS, BLOCK, warps = tile(cols, size, elements)
        FULL = full(rows, cols, ROWS, BLOCK)
        _ln_gelu_kept[(triton.cdiv(rows, ROWS),)](
            x, weight, bias, out, rows, cols, x.stride(0), eps, ROWS, BLOCK, FULL, num_warps=warps
        )
    elif parts := cut(rows, cols):
        whole = {"PART": 8192, "PARTS": triton.next_power_of_2(parts), "num_warps": 8}
        _part_moments[(rows * parts,)](x, seen, cols, x.stride(0), parts, PART=8192, num_warps=8)
        _ln_gelu_parts[(rows * parts,)](x, weight, bias, out, seen, cols, x.stride(0), parts, eps, **whole)
    else:
        _ln_gelu_long[(rows,)](x, weight, bias, out, cols, x.stride(0), eps, BLOCK=8192, num_warps=16)


@kernel(
    "ln_gelu_backward",
    tune={
        "size": [1024, 2048, 4096],
        "elements": [8, 16],
        "programs": [132, 256],
        "stages": [0, 1, 3],
        "warps": [0, 8, 16, 32],
    },
    scratch={"dw_parts": ("fp32", 256, "cols"), "db_parts": ("fp32", 256, "cols")},
    expects={
        "of": "_backward_kept",
        "spills": 0,
        "widest_global_load": 128,
        "widest_global_store": 128,
        "max_registers": 168,
    },
)
def ln_gelu_backward(
    dy, x, weight, bias, mean, rstd, *, out, dw_parts, db_parts, dweight=None, dbias=None,
    keep=8192, size=2048, elements=16, programs=256, whole=16384, stages=0, warps=0,
):  # fmt: skip
    rows, cols = x.shape
    sums = dweight is not None or dbias is not None
    if sums and whole_rows(x, weight, bias, shortest=8192, longest=whole):
        parts = max(1, min(132, rows))
        # Long 16-bit rows leave no registers for rows on their way: many warps hide the wait instead.
        depth, many = (1, 32) if cols > 4096 else (4 if x.element_size() == 2 else 3, 8)
        backward_whole[(parts,)](
            dy, x, weight, bias, mean, rstd, out, dw_parts, db_parts, rows, cols, True, stages or depth,
            num_warps=warps or many,
        )  # fmt: skip
        join_parts[(triton.cdiv(cols, 32), 2)](
            dw_parts, db_parts, dweight, dbias, parts, cols, triton.next_power_of_2(parts), 32
        )
        return
    if cols <= keep:
        ROWS, BLOCK, warps = tile(cols, size, elements)
        parts = max(1, min(programs, triton.cdiv(rows, ROWS))) if sums else triton.cdiv(rows, ROWS)
        _backward_kept[(parts,)](
            dy,
            x,
            weight,
            bias,
            mean,
            rstd,
            out,
            dw_parts,
            db_parts,
            rows,
            cols,
            sums,
            ROWS,
            BLOCK,
            num_warps=warps,
        )
    else:
        _backward_long[(rows,)](dy, x, weight, bias, mean, rstd, out, cols, BLOCK=4096, num_warps=8)
        parts = max(1, min(32, triton.cdiv(rows, 8)))
        if sums:
            _backward_columns[(triton.cdiv(cols, 256), parts)](
                dy, x, weight, bias, mean, rstd, dw_parts, db_parts, rows, cols, ROWS=8, BLOCK=256
            )
    for part, total in ((dw_parts, dweight), (db_parts, dbias)):
        if total is not None:
            _column_sums[(triton.cdiv(cols, 32),)](part, total, parts, cols, ROWS=256, BLOCK=32)
