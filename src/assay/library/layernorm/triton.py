"""LayerNorm in Triton: a tile of whole rows in registers; few longer rows cut into parts, many read three times."""

import triton
import triton.language as tl

from assay import kernel
from assay.library.norm_backward import backward_whole, join_parts, whole_rows


@triton.jit
def _load(p, inside, FULL: tl.constexpr):
    """As float32; without a mask where the tile is full: it would cost a register and an instruction for every word."""
    if FULL:
        return tl.load(p).to(tl.float32)
    return tl.load(p, mask=inside, other=0).to(tl.float32)


@triton.jit
def _normalised(x, weight, bias, r, c, rows, cols, stride, eps, FULL: tl.constexpr):
    """LayerNorm of a tile of whole rows, as float32; the mean and 1/√(variance + eps) of each row."""
    v = _load(x + r * stride + c, (r < rows) & (c < cols), FULL)
    mu = tl.div_rn(tl.sum(v, 1, keep_dims=True), cols * 1.0)
    d = v - mu
    if not FULL:
        d = tl.where(c < cols, d, 0)
    variance = tl.div_rn(tl.sum(d * d, 1, keep_dims=True), cols * 1.0)
    scale = tl.div_rn(1.0, tl.sqrt_rn(variance + eps))
    v = d * scale
    if weight is not None:
        v *= _load(weight + c, c < cols, FULL)
    if bias is not None:
        v += _load(bias + c, c < cols, FULL)
    return v, mu, scale


@triton.jit
def _layernorm_kept(
    x, weight, bias, y, mean, rstd, rows, cols, stride, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr, FULL: tl.constexpr
):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]  # 64-bit: offsets may exceed 2**31
    c = tl.arange(0, BLOCK)[None, :]
    v, mu, scale = _normalised(x, weight, bias, r, c, rows, cols, stride, eps, FULL)
    if FULL:
        tl.store(y + r * cols + c, v.to(y.dtype.element_ty))
    else:
        tl.store(y + r * cols + c, v.to(y.dtype.element_ty), mask=(r < rows) & (c < cols))
    if mean is not None:
        tl.store(mean + r, mu, mask=r < rows)
    if rstd is not None:
        tl.store(rstd + r, scale, mask=r < rows)


@triton.jit
def _layernorm_long(x, weight, bias, y, mean, rstd, cols, stride, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        sums += tl.load(x + r * stride + c, mask=c < cols, other=0).to(tl.float32)
    mu = tl.div_rn(tl.sum(sums, 0), cols * 1.0)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        d = tl.where(c < cols, tl.load(x + r * stride + c, mask=c < cols, other=0).to(tl.float32) - mu, 0)
        squares += d * d
    scale = tl.div_rn(1.0, tl.sqrt_rn(tl.div_rn(tl.sum(squares, 0), cols * 1.0) + eps))
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = (tl.load(x + r * stride + c, mask=c < cols, other=0).to(tl.float32) - mu) * scale
        if weight is not None:
            v *= tl.load(weight + c, mask=c < cols, other=0).to(tl.float32)
        if bias is not None:
            v += tl.load(bias + c, mask=c < cols, other=0).to(tl.float32)
        tl.store(y + r * cols + c, v.to(y.dtype.element_ty), mask=c < cols)
    if mean is not None:
        tl.store(mean + r, mu)
    if rstd is not None:
        tl.store(rstd + r, scale)


@triton.jit
def _part_moments(x, seen, cols, stride, parts, PART: tl.constexpr):
    """Of each part of each row: its mean, and the sum of squared differences from that."""
    r = (tl.program_id(0) // parts).to(tl.int64)
    first = tl.program_id(0) % parts * PART
    c = first + tl.arange(0, PART)
    v = tl.load(x + r * stride + c, mask=c < cols, other=0, eviction_policy="evict_last").to(tl.float32)
    mu = tl.div_rn(tl.sum(v, 0), tl.minimum(cols - first, PART) * 1.0)
    d = tl.where(c < cols, v - mu, 0)
    tl.store(seen + 2 * tl.program_id(0), mu)
    tl.store(seen + 2 * tl.program_id(0) + 1, tl.sum(d * d, 0))


@triton.jit
def _joined_moments(seen, r, parts, cols, eps, PART: tl.constexpr, PARTS: tl.constexpr):
    """The mean and 1/√(variance + eps) of a row from those of its parts (Chan's formula)."""
    p = tl.arange(0, PARTS)
    mus = tl.load(seen + 2 * (r * parts + p), mask=p < parts, other=0)
    squares = tl.load(seen + 2 * (r * parts + p) + 1, mask=p < parts, other=0)
    count = tl.where(p < parts, tl.minimum(cols - p * PART, PART), 0) * 1.0
    mu = tl.div_rn(tl.sum(mus * count, 0), cols * 1.0)
    d = tl.where(p < parts, mus - mu, 0)
    variance = tl.div_rn(tl.sum(squares + count * d * d, 0), cols * 1.0)
    return mu, tl.div_rn(1.0, tl.sqrt_rn(variance + eps))


@triton.jit
def _normalised_part(x, weight, bias, r, c, cols, stride, mu, scale):
    v = tl.load(x + r * stride + c, mask=c < cols, other=0, eviction_policy="evict_first").to(tl.float32)
    v = (v - mu) * scale
    if weight is not None:
        v *= tl.load(weight + c, mask=c < cols, other=0).to(tl.float32)
    if bias is not None:
        v += tl.load(bias + c, mask=c < cols, other=0).to(tl.float32)
    return v


@triton.jit
def _layernorm_parts(
    x, weight, bias, y, mean, rstd, seen, cols, stride, parts, eps, PART: tl.constexpr, PARTS: tl.constexpr
):
    r = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    c = part * PART + tl.arange(0, PART)
    mu, scale = _joined_moments(seen, r, parts, cols, eps, PART, PARTS)
    v = _normalised_part(x, weight, bias, r, c, cols, stride, mu, scale)
    tl.store(y + r * cols + c, v.to(y.dtype.element_ty), mask=c < cols)
    if mean is not None:
        tl.store(mean + r, mu, mask=part == 0)
    if rstd is not None:
        tl.store(rstd + r, scale, mask=part == 0)


@triton.jit
def _backward_kept(
    dy, x, weight, mean, rstd, dx, dw_parts, db_parts, rows, cols,
    SUMS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx; and with SUMS, where a program walks over many rows, its part of dweight and dbias."""
    c = tl.arange(0, BLOCK)[None, :]
    w = 1.0
    if weight is not None:
        w = tl.load(weight + c, mask=c < cols, other=0).to(tl.float32)
    dw = tl.zeros([ROWS, BLOCK], tl.float32)
    db = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        r = first + tl.arange(0, ROWS)[:, None].to(tl.int64)
        inside = (r < rows) & (c < cols)
        scale = tl.load(rstd + r, mask=r < rows, other=0)
        n = tl.load(x + r * cols + c, mask=inside, other=0).to(tl.float32)
        n = tl.where(inside, (n - tl.load(mean + r, mask=r < rows, other=0)) * scale, 0)
        d = tl.load(dy + r * cols + c, mask=inside, other=0).to(tl.float32)
        g = d * w
        along = tl.sum(g * n, 1, keep_dims=True) / cols
        total = tl.sum(g, 1, keep_dims=True) / cols
        tl.store(dx + r * cols + c, (scale * (g - total - n * along)).to(dx.dtype.element_ty), mask=inside)
        if SUMS:
            dw += d * n
            db += d
    if SUMS:
        part = tl.program_id(0).to(tl.int64) * cols + tl.arange(0, BLOCK)
        tl.store(dw_parts + part, tl.sum(dw, 0), mask=tl.arange(0, BLOCK) < cols)
        tl.store(db_parts + part, tl.sum(db, 0), mask=tl.arange(0, BLOCK) < cols)


@triton.jit
def _backward_long(dy, x, weight, mean, rstd, dx, cols, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    mu, scale = tl.load(mean + r), tl.load(rstd + r)
    along = tl.zeros([BLOCK], tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        g = tl.load(dy + r * cols + c, mask=c < cols, other=0).to(tl.float32)
        if weight is not None:
            g *= tl.load(weight + c, mask=c < cols, other=0).to(tl.float32)
        n = (tl.load(x + r * cols + c, mask=c < cols, other=0).to(tl.float32) - mu) * scale
        along += g * tl.where(c < cols, n, 0)
        total += g
    along_row = tl.sum(along, 0) / cols
    total_row = tl.sum(total, 0) / cols
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        g = tl.load(dy + r * cols + c, mask=c < cols, other=0).to(tl.float32)
        if weight is not None:
            g *= tl.load(weight + c, mask=c < cols, other=0).to(tl.float32)
        n = (tl.load(x + r * cols + c, mask=c < cols, other=0).to(tl.float32) - mu) * scale
        tl.store(
            dx + r * cols + c,
            (scale * (g - total_row - n * along_row)).to(dx.dtype.element_ty),
            mask=c < cols,
        )


@triton.jit
def _backward_columns(dy, x, mean, rstd, dw_parts, db_parts, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Parts of dweight and dbias where rows are long: some columns, every num_programs(1)-th tile of rows."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    dw = tl.zeros([ROWS, BLOCK], tl.float32)
    db = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(tl.program_id(1) * ROWS, rows, tl.num_programs(1) * ROWS):
        r = first + tl.arange(0, ROWS)[:, None].to(tl.int64)
        inside = (r < rows) & (c < cols)
        n = tl.load(x + r * cols + c, mask=inside, other=0).to(tl.float32)
        n = (n - tl.load(mean + r, mask=r < rows, other=0)) * tl.load(rstd + r, mask=r < rows, other=0)
        d = tl.load(dy + r * cols + c, mask=inside, other=0).to(tl.float32)
        dw += d * tl.where(inside, n, 0)
        db += d
    part = tl.program_id(1).to(tl.int64) * cols + c
    tl.store(dw_parts + part, tl.sum(dw, 0)[None, :], mask=c < cols)
    tl.store(db_parts + part, tl.sum(db, 0)[None, :], mask=c < cols)


@triton.jit
def _column_sums(parts, out, count, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out[c] = Σ parts[i][c], in a fixed order."""
    r = tl.arange(0, ROWS)[:, None]
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.load(parts + r.to(tl.int64) * cols + c[None, :], mask=(r < count) & (c[None, :] < cols), other=0)
    tl.store(out + c, tl.sum(sums, 0).to(out.dtype.element_ty), mask=c < cols)


def full(rows, cols, ROWS, BLOCK):
    """Whether every tile is full, so that none needs a mask."""
    return cols == BLOCK and rows % ROWS == 0


def cut(rows, cols, PART=8192, most=4096):
    """Into how many parts each of few long rows is cut, so that all multiprocessors have work; 0 for many rows."""
    parts = triton.cdiv(cols, PART)
    return parts if rows * parts <= most else 0


def tile(cols, size, elements):
    """Rows and columns of a tile of at least `size` elements, and warps for `elements` per thread."""
    BLOCK = triton.next_power_of_2(cols)
    ROWS = max(1, size // BLOCK)
    return ROWS, BLOCK, max(1, min(32, ROWS * BLOCK // (32 * elements)))


@kernel(
    "layernorm",
    scratch={"seen": ("fp32", 8192)},
    tune={"keep": [8192, 16384, 32768], "size": [1024, 2048, 4096], "elements": [8, 16, 32]},
    expects={"spills": 16, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 80},
)
def layernorm(x, weight, bias, *, eps, out, seen, mean=None, rstd=None, keep=32768, size=2048, elements=32):
    rows, cols = x.shape
    if cols <= keep:
        ROWS, BLOCK, warps = tile(cols, size, elements)
        FULL = full(rows, cols, ROWS, BLOCK)
        _layernorm_kept[(triton.cdiv(rows, ROWS),)](
            x, weight, bias, out, mean, rstd, rows, cols, x.stride(0), eps, ROWS, BLOCK, FULL, num_warps=warps
        )
    elif parts := cut(rows, cols):
        whole = {"PART": 8192, "PARTS": triton.next_power_of_2(parts), "num_warps": 8}
        _part_moments[(rows * parts,)](x, seen, cols, x.stride(0), parts, PART=8192, num_warps=8)
        _layernorm_parts[(rows * parts,)](
            x, weight, bias, out, mean, rstd, seen, cols, x.stride(0), parts, eps, **whole
        )
    else:
        _layernorm_long[(rows,)](x, weight, bias, out, mean, rstd, cols, x.stride(0), eps, BLOCK=8192, num_warps=16)


@kernel(
    "layernorm_backward",
    tune={"keep": [4096, 8192], "size": [1024, 2048, 4096], "elements": [8, 16], "programs": [132, 256]},
    scratch={"dw_parts": ("fp32", 256, "cols"), "db_parts": ("fp32", 256, "cols")},
    expects={
        "of": "_backward_kept",
        "spills": 0,
        "widest_global_load": 128,
        "widest_global_store": 128,
        "max_registers": 128,
    },
)
def layernorm_backward(
    dy, x, weight, mean, rstd, *, out, dw_parts, db_parts, dweight=None, dbias=None,
    keep=8192, size=2048, elements=16, programs=256, whole=16384,
):  # fmt: skip
    rows, cols = x.shape
    sums = dweight is not None or dbias is not None
    if sums and whole_rows(x, weight, shortest=8192, longest=whole):
        parts = max(1, min(132, rows))
        stages = 4 if cols * x.element_size() <= 8192 else 3
        backward_whole[(parts,)](
            dy, x, weight, None, mean, rstd, out, dw_parts, db_parts, rows, cols, False, stages, num_warps=8
        )
        join_parts[(triton.cdiv(cols, 32), 2)](
            dw_parts, db_parts, dweight, dbias, parts, cols, triton.next_power_of_2(parts), 32
        )
        return
    if cols <= keep:
        ROWS, BLOCK, warps = tile(cols, size, elements)
        parts = max(1, min(programs, triton.cdiv(rows, ROWS))) if sums else triton.cdiv(rows, ROWS)
        _backward_kept[(parts,)](
            dy, x, weight, mean, rstd, out, dw_parts, db_parts, rows, cols, sums, ROWS, BLOCK, num_warps=warps
        )
    else:
        _backward_long[(rows,)](dy, x, weight, mean, rstd, out, cols, BLOCK=4096, num_warps=8)
        parts = max(1, min(32, triton.cdiv(rows, 8)))
        if sums:
            _backward_columns[(triton.cdiv(cols, 256), parts)](
                dy, x, mean, rstd, dw_parts, db_parts, rows, cols, ROWS=8, BLOCK=256
            )
    for part, total in ((dw_parts, dweight), (db_parts, dbias)):
        if total is not None:
            _column_sums[(triton.cdiv(cols, 32),)](part, total, parts, cols, ROWS=256, BLOCK=32)
