"""The backward pass of LayerNorm, and of GELU after it, in Triton: programs that stay for many rows."""

import triton
import triton.language as tl

from assay.library.short_float import short_gelu_slope


@triton.jit
def gelu_slope(x, SHORT: tl.constexpr):
    """Φ(x) + x·φ(x). SHORT: for results of 16 bits."""
    if SHORT:
        return short_gelu_slope(x)
    return 0.5 * (1 + tl.erf(x * 0.7071067811865476)) + x * tl.exp(-0.5 * x * x) * 0.3989422804014327


@triton.jit
def backward_whole(
    dy, x, weight, bias, mean, rstd, dx, dw_parts, db_parts, rows,
    COLS: tl.constexpr, GELU: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """dx of whole rows, and this program's part of dweight and dbias. With STAGES the next rows are on their way to
    shared memory while one is worked on; both sums along a row are one reduction, with one barrier."""
    c = tl.arange(0, COLS)
    w = tl.load(weight + c)
    b = w
    if GELU:
        b = tl.load(bias + c)
    dw = tl.zeros([COLS], tl.float32)
    db = tl.zeros([COLS], tl.float32)
    first = tl.program_id(0).to(tl.int64)
    for r in tl.range(first, rows, tl.num_programs(0), num_stages=STAGES):
        scale = tl.load(rstd + r)
        n = (tl.load(x + r * COLS + c).to(tl.float32) - tl.load(mean + r)) * scale
        d = tl.load(dy + r * COLS + c).to(tl.float32)
        if GELU:
            d *= gelu_slope(n * w.to(tl.float32) + b.to(tl.float32), dx.dtype.element_ty != tl.float32)
        g = d * w.to(tl.float32)
        along, total = tl.split(tl.sum(tl.join(g * n, g), 0))
        v = n * (-along * scale * (1.0 / COLS)) + (g * scale - total * scale * (1.0 / COLS))
        tl.store(dx + r * COLS + c, v.to(dx.dtype.element_ty), eviction_policy="evict_first")
        dw += d * n
        db += d
    tl.store(dw_parts + first * COLS + c, dw)
    tl.store(db_parts + first * COLS + c, db)


@triton.jit
def join_parts(dw_parts, db_parts, dweight, dbias, count, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """dweight and dbias, either of which may be absent, in one launch: program_id(1) says which."""
    r = tl.arange(0, ROWS)[:, None]
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    o = r.to(tl.int64) * cols + c[None, :]
    inside = (r < count) & (c[None, :] < cols)
    if tl.program_id(1) == 0:
        if dweight is not None:
            sums = tl.sum(tl.load(dw_parts + o, mask=inside, other=0), 0)
            tl.store(dweight + c, sums.to(dweight.dtype.element_ty), mask=c < cols)
    else:
        if dbias is not None:
            sums = tl.sum(tl.load(db_parts + o, mask=inside, other=0), 0)
            tl.store(dbias + c, sums.to(dbias.dtype.element_ty), mask=c < cols)


def whole_rows(x, *tensors, shortest, longest):
    """Whether a program works on whole rows: a power of two of `shortest` to `longest` bytes, nothing absent."""
    cols = x.shape[1]
    size = cols * x.element_size()
    return shortest <= size <= longest and cols & (cols - 1) == 0 and all(t is not None for t in tensors)
