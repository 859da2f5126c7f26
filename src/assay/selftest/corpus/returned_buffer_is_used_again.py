"""The result is returned in a buffer that is kept for each shape: the next call overwrites what the caller still
holds."""

import torch

from assay import kernel

DETECTOR = "alias"
_KEPT: dict = {}


@kernel("gelu", backend="torch", variant="wrong", returns=True)
def wrong(x):
    return _gelu(x, _KEPT.setdefault((x.shape, x.dtype), torch.empty_like(x)))


@kernel("gelu", backend="torch", variant="fixed", returns=True)
def fixed(x):
    return _gelu(x, torch.empty_like(x))


def _gelu(x, out):
    return out.copy_(torch.nn.functional.gelu(x.double()))
