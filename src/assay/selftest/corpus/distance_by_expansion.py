"""‖x‖² + ‖y‖² − 2·x·y, which matrix units do well: where x and y are close together, what is left is
rounding error."""

import torch

from assay import kernel

DETECTOR = "values or nonfinite"


@kernel("euclidean_distance", variant="wrong")
def wrong(x, y, *, out):
    squared = (x * x).sum(1) + (y * y).sum(1) - 2 * (x * y).sum(1)
    torch.sqrt(torch.where(squared < 0, 0, squared), out=out)


@kernel("euclidean_distance", variant="fixed")
def fixed(x, y, *, out):
    squared = (x - y).square().sum(1)
    torch.sqrt(torch.where(squared < 0, 0, squared), out=out)
