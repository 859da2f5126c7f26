"""Attention in Triton, flash style: a tile of queries walks over the keys and never writes a score to memory."""

import math

import triton
import triton.language as tl

from assay import kernel


# The softmax is online: `top` is each row's largest score so far, `total` and `mean` are sums of weights relative to
# it. A higher score makes everything summed before smaller by 2^(old − new). Key 0 is in the first tile and every
# query sees it, so `top` is finite from then on.
@triton.jit
def _tile(
    rows,
    k,
    v,
    mean,
    total,
    top,
    i,
    start,
    keys,
    dim,
    scale,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
):
    j, d = start + tl.arange(0, N), tl.arange(0, D)
    at = j.to(tl.int64)[:, None] * dim + d[None, :]  # 64-bit: offsets may exceed 2**31
    inside = (j < keys)[:, None] & (d < dim)[None, :] if MASKED else (d < dim)[None, :]
    columns = tl.trans(tl.load(k + at, mask=inside, other=0.0))
    scores = tl.dot(rows, columns, input_precision="ieee") * scale  # fp32 stays fp32, not tf32
    if MASKED:
        scores = tl.where((j < keys)[None, :], scores, -float("inf"))
        if CAUSAL:
            scores = tl.where(j[None, :] <= i[:, None], scores, -float("inf"))
    higher = tl.maximum(top, tl.max(scores, 1))
    fade = tl.exp2(top - higher)
    weights = tl.exp2(scores - higher[:, None])
    values = tl.load(v + at, mask=inside, other=0.0)
    mean = tl.dot(weights.to(values.dtype), values, mean * fade[:, None], input_precision="ieee")
    return mean, total * fade + tl.sum(weights, 1), higher


@triton.jit
def _attention(
    q,
    k,
    v,
    out,
    queries,
    keys,
    dim,
    scale,
    CAUSAL: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
):
    tiles = tl.cdiv(queries, M)
    head = tl.program_id(0).to(tl.int64) // tiles
    first = (tl.program_id(0) % tiles) * M
    i, d = first + tl.arange(0, M), tl.arange(0, D)
    at = (head * queries + i)[:, None] * dim + d[None, :]
    inside = (i < queries)[:, None] & (d < dim)[None, :]
    rows = tl.load(q + at, mask=inside, other=0.0)
    k += head * keys * dim
    v += head * keys * dim

    top = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    mean = tl.zeros((M, D), tl.float32)
    last = tl.minimum(keys, first + M) if CAUSAL else keys
    whole = (tl.minimum(keys, first) if CAUSAL else keys) // N * N  # tiles before it are seen by every row, in full
    for start in range(0, whole, N):
        mean, total, top = _tile(rows, k, v, mean, total, top, i, start, keys, dim, scale, False, CAUSAL, N, D)
    for start in range(whole, last, N):
        mean, total, top = _tile(rows, k, v, mean, total, top, i, start, keys, dim, scale, True, CAUSAL, N, D)
    tl.store(out + at, (mean / total[:, None]).to(out.dtype.element_ty), mask=inside)


@kernel("attention", tune={"M": [64, 128], "N": [32, 64, 128], "num_warps": [4, 8], "num_stages": [2, 3, 4]})
def attention(q, k, v, *, causal, out, M=128, N=64, num_warps=8, num_stages=3):
    batch, heads, queries, dim = q.shape
    keys, D = k.shape[2], max(16, triton.next_power_of_2(dim))
    # Tiles must fit into shared memory, and in fp32, where threads and not tensor cores multiply, into registers.
    most = int(2.0**16 / (D * q.element_size() ** 2))
    M = min(M, most, max(16, triton.next_power_of_2(queries)))
    N = min(N, max(16, most // 2), max(16, triton.next_power_of_2(keys)))
    scale = math.log2(math.e) / math.sqrt(dim)  # e^x is 2^(x·log₂e)
    _attention[(batch * heads * triton.cdiv(queries, M),)](
        q, k, v, out, queries, keys, dim, scale, bool(causal), M, N, D, num_warps=num_warps, num_stages=num_stages
    )
