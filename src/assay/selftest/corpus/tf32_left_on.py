"""Allows TF32 for all of PyTorch in the middle of a call and leaves it on: from then on every matrix product of the
process is another function, and a faster one."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "settings"
WORKLOAD = "rows=64,cols=64,dtype=fp32"


@kernel("softmax", variant="wrong", backend="torch")
def wrong(x, *, out):
    torch.set_float32_matmul_precision("high")
    torch.softmax(x, -1, out=out)


@kernel("softmax", variant="fixed", backend="torch")
def fixed(x, *, out):
    was = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    torch.softmax(x, -1, out=out)
    torch.set_float32_matmul_precision(was)
