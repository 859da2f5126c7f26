"""One configuration scales its input in place and never scales it back. A tuner that does not restore the inputs hands
the changed ones to every later configuration (triton-lang/triton#7181)."""

import torch

from assay import kernel

VERB = "tune"
DETECTOR = "input"
WORKLOAD = "n=30000,dtype=fp32"


@kernel("relu", variant="wrong", backend="torch", tune={"in_place": [False, True]})
def wrong(x, *, out, in_place=False):
    torch.clamp(x.clamp_(min=0) if in_place else x, min=0, out=out)


@kernel("relu", variant="fixed", backend="torch", tune={"in_place": [False, True]})
def fixed(x, *, out, in_place=False):
    if in_place:
        out.copy_(x)
        out.clamp_(min=0)
    else:
        torch.clamp(x, min=0, out=out)
