"""QuACK's softmax (CuTe), where it is installed: a peer to be timed against."""

from assay import kernel


@kernel("softmax", needs="quack-kernels", returns=True)
def softmax(x):
    from quack.softmax import softmax_fwd

    return softmax_fwd(x)
