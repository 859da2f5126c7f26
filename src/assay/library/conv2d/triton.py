"""Convolution in Triton as a matrix product: weights (k × crs) · windows (crs × pixels) gathered from x."""

import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _conv2d(
    x, weight, bias, out, pixels, area, c, h, w, k, ow, R, S, stride, padding, run,
    BLOCK_K: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    depth = c * R * S
    groups = tl.cdiv(k, BLOCK_K)
    pid = tl.program_id(0).to(tl.int64)  # 64-bit: tensors may exceed 2**31 elements
    channel = pid % groups * BLOCK_K + tl.arange(0, BLOCK_K)[:, None]
    pixel = pid // groups * BLOCK_P + tl.arange(0, BLOCK_P)[None, :]
    sample, place = pixel // area, pixel % area
    top, left = (place // ow).to(tl.int32) * stride - padding, (place % ow).to(tl.int32) * stride - padding
    corner = x + (sample * c * h + top) * w + left  # where each pixel's window begins, perhaps in the padding
    filters = weight + channel * depth

    total = tl.zeros((BLOCK_K, BLOCK_P), tl.float32)
    for start in range(0, depth, run):  # long sums lose bits: sum runs, then the runs
        partial = tl.zeros((BLOCK_K, BLOCK_P), tl.float32)
        for first in range(start, min(start + run, depth), BLOCK):
            tap = first + tl.arange(0, BLOCK)[None, :]
            weights = tl.load(filters + tap, mask=(channel < k) & (tap < depth), other=0.0)
            tap = first + tl.arange(0, BLOCK)[:, None]
            plane, i, j = (tap // (R * S)).to(tl.int64), tap // S % R, tap % S
            y, z = top + i, left + j
            inside = (y >= 0) & (y < h) & (z >= 0) & (z < w) & (tap < depth) & (pixel < pixels)
            values = tl.load(corner + (plane * h + i) * w + j, mask=inside, other=0.0)
            partial = tl.dot(weights, values, partial, input_precision="ieee")  # fp32 stays fp32, not tf32
        total += partial

    if bias is not None:
        total += tl.load(bias + channel, mask=channel < k, other=0.0).to(tl.float32)
    at = out + (sample * k + channel) * area + place
    tl.store(at, total.to(out.dtype.element_ty), mask=(channel < k) & (pixel < pixels))


@kernel(
    "conv2d",
    tune={"BLOCK_K": [32, 64, 128], "BLOCK_P": [64, 128], "BLOCK": [16, 32, 64], "num_warps": [4, 8]},
)
def conv2d(x, weight, bias, *, stride, padding, out, BLOCK_K=64, BLOCK_P=64, BLOCK=32, num_warps=4):
    (n, c, h, w), (k, _, r, s), (oh, ow) = x.shape, weight.shape, out.shape[2:]
    BLOCK_K, area = min(BLOCK_K, max(16, triton.next_power_of_2(k))), oh * ow
    # Runs of L products, then a sum over the K/L runs: the error is least where L³ = K²/2.
    run = triton.cdiv(round(((c * r * s) ** 2 / 2) ** (1 / 3)), BLOCK) * BLOCK
    _conv2d[(triton.cdiv(n * area, BLOCK_P) * triton.cdiv(k, BLOCK_K),)](
        x, weight, bias, out, n * area, area, c, h, w, k, ow, r, s, stride, padding, run,
        BLOCK_K, BLOCK_P, BLOCK, num_warps=num_warps,
    )  # fmt: skip
