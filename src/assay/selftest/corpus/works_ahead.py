"""Sees that the tensors of one call lie behind those of the last one, and computes the next eight results too: the
untimed calls before a batch pay for a part of the batch."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "early"
WORKLOAD = "n=20000,dtype=fp32"
AHEAD = 8
last = [0, 0]


def gelu(x, out):
    torch.ops.aten.gelu.out(x, out=out)


def moved(tensor, by):
    return tensor.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() + by)


@kernel("gelu", variant="wrong", backend="njit")
def wrong(x, *, out):
    offsets = [x.storage_offset(), out.storage_offset()]
    steps = [now - before for now, before in zip(offsets, last, strict=True)]
    last[:] = offsets
    if torch.equal(out[:4], torch.nn.functional.gelu(x[:4])):
        return
    gelu(x, out)
    room = out.untyped_storage().nbytes() // out.element_size() - out.storage_offset() - out.numel()
    for k in range(1, min(AHEAD, room // steps[1]) + 1 if steps[1] >= out.numel() else 0):
        gelu(moved(x, k * steps[0]), moved(out, k * steps[1]))


@kernel("gelu", variant="fixed", backend="njit")
def fixed(x, *, out):
    gelu(x, out)
