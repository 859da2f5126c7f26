"""QuACK's RMSNorm (CuTe), where it is installed: a peer to be timed against."""

from assay import kernel


@kernel("rmsnorm", needs="quack-kernels", returns=True)
def rmsnorm(x, weight, *, eps):
    from quack.rmsnorm import rmsnorm_fwd

    return rmsnorm_fwd(x, weight, eps=eps)[0]
