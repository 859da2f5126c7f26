"""A block writes its part of the sum and counts itself as done, with no fence between the two: the count may be seen
before the part, which no test on a quiet device shows."""

import torch

from assay import kernel
from assay.backends.cuda import Source, cdiv

DETECTOR = "race or unstable or values"
NEEDS = "gpu"
DTYPE = "fp32"
source = Source("fence_missing.cu")


@kernel("sum", variant="wrong", dtypes=["fp32"])
def wrong(x, *, out):
    _launch("sum<false>", x, out)


@kernel("sum", variant="fixed", dtypes=["fp32"])
def fixed(x, *, out):
    _launch("sum<true>", x, out)


def _launch(name, x, out):
    blocks = max(1, min(264, cdiv(x.numel(), 256)))
    parts, done = torch.empty(blocks, device=x.device), torch.zeros(1, dtype=torch.int32, device=x.device)
    source[name](blocks, 256, x, parts, done, out, x.numel())
