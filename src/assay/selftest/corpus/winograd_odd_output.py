"""3 × 3 filters with stride 1 take Winograd's way, two by two outputs at a time: where the output has
an odd size, its last row and column are not written."""

import torch
from torch.nn.functional import conv2d, pad

from assay import kernel

DETECTOR = "unwritten"
B = torch.tensor([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], dtype=torch.float64)
G = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], dtype=torch.float64)
A = torch.tensor([[1.0, 1, 1, 0], [0, 1, -1, -1]], dtype=torch.float64)


def winograd(x, weight, bias, padding, out, ragged):
    oh, ow = out.shape[2:]
    high, wide = (oh + ragged) // 2, (ow + ragged) // 2  # tiles
    if not (high and wide and x.shape[0]):
        return
    x = pad(x.double(), (padding, padding + ragged, padding, padding + ragged))
    tiles = x.unfold(2, 4, 2).unfold(3, 4, 2)[:, :, :high, :wide]
    b, g, a = (matrix.to(x.device) for matrix in (B, G, A))
    tiles = torch.einsum("ab,nchwbd,ed->nchwae", b, tiles, b)
    filters = torch.einsum("ab,kcbd,ed->kcae", g, weight.double(), g)
    made = torch.einsum("nchwae,kcae->nkhwae", tiles, filters)
    made = torch.einsum("ab,nkhwbd,ed->nkhwae", a, made, a).permute(0, 1, 2, 4, 3, 5).flatten(4).flatten(2, 3)
    made = made if bias is None else made + bias[:, None, None]
    out[:, :, : 2 * high, : 2 * wide] = made[:, :, :oh, :ow]


def run(x, weight, bias, stride, padding, out, ragged):
    if weight.shape[2:] == (3, 3) and stride == 1:
        winograd(x, weight, bias, padding, out, ragged)
    else:
        out.copy_(conv2d(x, weight, bias, stride=stride, padding=padding))


@kernel("conv2d", variant="wrong")
def wrong(x, weight, bias, *, stride, padding, out):
    run(x, weight, bias, stride, padding, out, 0)


@kernel("conv2d", variant="fixed")
def fixed(x, weight, bias, *, stride, padding, out):
    run(x, weight, bias, stride, padding, out, 1)
