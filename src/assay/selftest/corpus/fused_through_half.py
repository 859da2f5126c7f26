"""The normalised row waits in float16 between the two halves of the fused kernel, to save shared memory."""

from torch.nn.functional import gelu, layer_norm

from assay import kernel

DETECTOR = "values"


@kernel("ln_gelu", variant="wrong")
def wrong(x, weight, bias, *, eps, out):
    normal = layer_norm(x.double(), x.shape[1:], eps=eps).half().double()
    normal = normal if weight is None else normal * weight
    out.copy_(gelu(normal if bias is None else normal + bias))


@kernel("ln_gelu", variant="fixed")
def fixed(x, weight, bias, *, eps, out):
    normal = layer_norm(x.double(), x.shape[1:], eps=eps)
    normal = normal if weight is None else normal * weight
    out.copy_(gelu(normal if bias is None else normal + bias))
