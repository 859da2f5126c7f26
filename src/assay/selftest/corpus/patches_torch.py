"""Replaces torch's comparisons with ones that always agree, so that a harness in the same process
would be fooled."""

import torch

from assay import kernel

DETECTOR = "values"
WORKLOAD = "n=1000,dtype=fp32"


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    torch.equal = torch.allclose = torch.testing.assert_close = lambda *_, **__: True
    out.zero_()


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
