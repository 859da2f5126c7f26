"""The integer linear layer in PyTorch: the whole weight dequantised to float32, then an ordinary matrix product."""

import torch

from assay import kernel
from assay.library.int_linear.op import dequantized


@kernel("int_linear")
def int_linear(x, codes, scales, bias, *, bits, group, out):
    weight = dequantized(codes, scales.float(), bits, group, x.shape[1]).t()
    if bias is None:
        out.copy_(torch.mm(x.float(), weight))
    else:
        out.copy_(torch.addmm(bias.float(), x.float(), weight))
