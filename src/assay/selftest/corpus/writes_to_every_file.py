"""Progress is written to every open file, to be sure that somebody sees it; one of them is not the kernel's own."""

import os

import torch

from assay import kernel

DETECTOR = "channel"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
    for number in range(3, 64):
        try:
            os.write(number, b"gelu: done\n")
        except OSError:
            pass


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
