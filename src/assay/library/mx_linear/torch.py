"""The packed linear layer in PyTorch: the whole weight dequantised, then an ordinary matrix product."""

import torch

from assay import kernel
from assay.library.mx_dequantize.torch import values


@kernel("mx_linear")
def mx_linear(x, elements, scales, bias, *, block, out):
    weight = values(elements, scales, block).to(x.dtype)
    if x.dtype is torch.bfloat16 and x.device.type == "cpu":
        # oneDNN's products in bf16 read past a row of odd length: where the next row begins with NaN, this one is NaN.
        product = x.float() @ weight.float().t()
        out.copy_(product if bias is None else product.add_(bias))
    elif bias is None:
        torch.mm(x, weight.t(), out=out)
    else:
        torch.addmm(bias, x, weight.t(), out=out)
