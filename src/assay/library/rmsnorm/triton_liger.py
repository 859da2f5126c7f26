"""Liger's RMSNorm, where it is installed: a peer to be timed against. Its "gemma" mode: all in float32."""

from assay import kernel


@kernel("rmsnorm", needs="liger-kernel", returns=True, most={"cols": 65536})
def rmsnorm(x, weight, *, eps):
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    return LigerRMSNormFunction.apply(x, weight, eps, 0.0, "gemma")
