"""The packed linear layer in PyTorch: the whole weight dequantised, then an ordinary matrix product."""

import torch

from assay import kernel
from assay.library.mx_dequantize.torch import values


@kernel("mx_linear")
def mx_linear(x, elements, scales, bias, *, block, out):
    weight = values(elements, scales, block).to(x.dtype)
    if bias is None:
        torch.mm(x, weight.t(), out=out)
    else:
        torch.addmm(bias, x, weight.t(), out=out)
