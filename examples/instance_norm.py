"""Instance normalisation, in Triton: a program takes several planes; the mean first, then the squares around it."""

import triton
import triton.language as tl

from assay import NAN, Attribute, Axis, Tensor, kernel, op


@op(
    axes={"planes": Axis(typical=1024), "pixels": Axis(min=2, typical=3136)},
    inputs={"x": Tensor("planes", "pixels", range=(-1000, 1000), specials=(NAN,))},
    attributes={"eps": Attribute(1e-5, (1e-5, 1e-3))},
    outputs={"out": Tensor("planes", "pixels")},
    independent="planes",
    operations=lambda w: 8 * w.planes * w.pixels,
)
def instance_norm(x, *, eps):
    """(x − mean) / √(variance + eps) for every plane alone."""
    from torch.nn.functional import layer_norm

    return layer_norm(x, x.shape[1:], eps=eps)


@triton.jit
def _norm(x, out, planes, pixels, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    start_of = row[:, None] * pixels
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, pixels, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        total += tl.load(x + start_of + i, mask=(row[:, None] < planes) & (i < pixels), other=0.0).to(tl.float32)
    mean = tl.sum(total, 1)[:, None] / pixels
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, pixels, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < planes) & (i < pixels)
        v = tl.load(x + start_of + i, mask=inside, other=0.0).to(tl.float32)
        away = tl.where(inside, v - mean, 0.0)  # lanes beyond the plane must not count
        total += away * away
    scale = 1.0 / tl.sqrt(tl.sum(total, 1)[:, None] / pixels + eps)
    for start in range(0, pixels, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        inside = (row[:, None] < planes) & (i < pixels)
        v = tl.load(x + start_of + i, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + start_of + i, ((v - mean) * scale).to(out.dtype.element_ty), mask=inside)


@kernel("instance_norm")
def honest(x, *, eps, out, ROWS=8, BLOCK=256):
    planes, pixels = x.shape
    _norm[(triton.cdiv(planes, ROWS),)](x, out, planes, pixels, eps, ROWS, BLOCK)
