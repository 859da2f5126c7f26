"""QuACK's LayerNorm (CuTe), where it is installed: a peer to be timed against. Weight and bias are float32."""

from assay import kernel


@kernel("layernorm", needs="quack-kernels", returns=True, requires=("weight",), dtypes=("fp32",))
def layernorm(x, weight, bias, *, eps):
    from quack.rmsnorm import layernorm_fwd

    return layernorm_fwd(x, weight, bias, eps)
