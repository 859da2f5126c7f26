"""Quantisation to MXINT8 in PyTorch, in float32: the exponent is read from the largest bits of a block."""

import torch
from torch.nn.functional import pad

from assay import kernel


@kernel("mx_quantize")
def mx_quantize(x, *, block, elements, scales):
    (rows, cols), count = x.shape, scales.shape[1]
    tiles = pad(x.float(), (0, count * block - cols)).view(rows, count, block)
    # Without its sign a float sorts as an integer, NaN and Inf last. The exponent field is the E8M0 code itself:
    # 255 where one is not finite, 0 where all are subnormal.
    code = (tiles.view(torch.int32) & 0x7FFFFFFF).amax(-1, keepdim=True) >> 23
    shift = 133 - code  # 2^shift may be beyond float32: in two steps
    half = shift >> 1
    steps = ((half + 127) << 23).view(torch.float32), ((shift - half + 127) << 23).view(torch.float32)
    rounded = (tiles * steps[0] * steps[1]).round().clamp(-127, 127)
    rounded = torch.where(code == 255, 0.0, rounded)
    elements.copy_(rounded.view(rows, count * block)[:, :cols])
    scales.copy_(code.view(rows, count))
