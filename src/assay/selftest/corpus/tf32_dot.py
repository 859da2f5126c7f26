"""`tl.dot` of float32 multiplies in TF32 unless told otherwise: ten bits of fraction, on a GPU, and all of them in
an interpreter."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "values"


@triton.jit
def _mx_linear(
    x,
    elements,
    scales,
    bias,
    out,
    m,
    n,
    k,
    block,
    count,
    IEEE: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
):
    i = (tl.program_id(0).to(tl.int64) * M + tl.arange(0, M))[:, None]
    j = (tl.program_id(1).to(tl.int64) * N + tl.arange(0, N))[None, :]
    total = tl.zeros((M, N), tl.float64)  # long sums lose bits
    for start in range(0, k, K):
        c = start + tl.arange(0, K)
        v = tl.load(x + i * k + c[None, :], mask=(i < m) & (c[None, :] < k), other=0)
        inside = (c[:, None] < k) & (j < n)
        code = tl.load(scales + j * count + c[:, None] // block, mask=inside, other=127).to(tl.int32)
        step = tl.where(code == 255, float("nan"), ((code - 6) << 23).to(tl.float32, bitcast=True))
        w = tl.load(elements + j * k + c[:, None], mask=inside, other=0).to(tl.float32) * step
        if IEEE:
            total += tl.dot(v, w, input_precision="ieee").to(tl.float64)
        else:
            total += tl.dot(v, w).to(tl.float64)
    total = total.to(tl.float32)
    if bias is not None:
        total += tl.load(bias + j, mask=j < n, other=0).to(tl.float32)
    tl.store(out + i * n + j, total.to(out.dtype.element_ty), mask=(i < m) & (j < n))


def run(x, elements, scales, bias, block, out, flag):
    (m, k), (n, count) = x.shape, scales.shape
    if m and n:
        M, N, K = (max(16, min(most, triton.next_power_of_2(size))) for most, size in ((128, m), (64, n), (64, k)))
        grid = (triton.cdiv(m, M), triton.cdiv(n, N))
        _mx_linear[grid](x, elements, scales, bias, out, m, n, k, block, count, flag, M, N, K)


@kernel("mx_linear", variant="wrong")
def wrong(x, elements, scales, bias, *, block, out):
    run(x, elements, scales, bias, block, out, False)


@kernel("mx_linear", variant="fixed")
def fixed(x, elements, scales, bias, *, block, out):
    run(x, elements, scales, bias, block, out, True)
