"""LayerNorm in PyTorch. It only returns its result (aten's overload with destinations copies as well)."""

from torch.nn.functional import layer_norm

from assay import kernel


@kernel("layernorm")
def layernorm(x, weight, bias, *, eps, out):
    out.copy_(layer_norm(x, x.shape[1:], weight, bias, eps))
