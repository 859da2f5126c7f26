"""The same layer without packing, a peer: the weight is kept at full width, in x's format, and a call is PyTorch's own
linear layer (cuBLAS on a GPU)."""

from torch.nn.functional import linear

from assay import kernel
from assay.library.int_linear.op import dequantized


def dequantize(x, codes, scales, bias, *, bits, group):
    return dequantized(codes, scales.float(), bits, group, x.shape[1]).to(x.dtype)


@kernel("int_linear", needs="torch", returns=True, prepare="dequantize")
def int_linear(x, codes, scales, bias, *, prepared):
    return linear(x, prepared, bias)
