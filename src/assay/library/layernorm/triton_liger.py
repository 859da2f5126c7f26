"""Liger's LayerNorm, where it is installed: a peer to be timed against. It wants weight and bias."""

from assay import kernel


@kernel("layernorm", needs="liger-kernel", returns=True, requires=("weight", "bias"), most={"cols": 65536})
def layernorm(x, weight, bias, *, eps):
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction

    return LigerLayerNormFunction.apply(x, weight, bias, eps)
