"""LayerNorm in PyTorch, as its users call it: it only returns its result (aten's overload with destinations copies)."""

from torch.nn.functional import layer_norm

from assay import kernel


@kernel("layernorm", returns=True)
def layernorm(x, weight, bias, *, eps):
    return layer_norm(x, x.shape[1:], weight, bias, eps)
