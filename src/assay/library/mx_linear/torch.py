"""The packed linear layer in PyTorch: the whole weight dequantised, then an ordinary matrix product. It is a peer: of a
product with few rows and many terms cuBLAS rounds the parts of a sum to 16 bits before it adds them."""

import torch

from assay import kernel
from assay.library.mx_dequantize.torch import values


@kernel("mx_linear", needs="torch")
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
