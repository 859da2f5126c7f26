"""Liger's softmax, where it is installed: a peer to be timed against."""

from assay import kernel


@kernel("softmax", needs="liger-kernel", returns=True)
def softmax(x):
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    return LigerSoftmaxFunction.apply(x)
