"""One configuration splits the work and adds the parts to an output that it expects to be zero. A tuner that clears the
buffer before the first call alone, or never, times sums of older results (triton-lang/triton#6547)."""

import torch

from assay import kernel

VERB = "tune"
DETECTOR = "values or nonfinite or unwritten"
WORKLOAD = "n=30000,dtype=fp32"


@kernel("gelu", variant="wrong", backend="torch", tune={"split": [1, 2]})
def wrong(x, *, out, split=1):
    if split == 1:
        torch.ops.aten.gelu.out(x, out=out)
        return
    for _ in range(split):
        out += torch.nn.functional.gelu(x) / split


@kernel("gelu", variant="fixed", backend="torch", tune={"split": [1, 2]})
def fixed(x, *, out, split=1):
    if split == 1:
        torch.ops.aten.gelu.out(x, out=out)
        return
    out.zero_()
    for _ in range(split):
        out += torch.nn.functional.gelu(x) / split
