"""Computes the results of eight calls at once, since the tensors of one call lie behind those of the last one, and does
nothing in the next seven: what a launch or a call costs is paid once for eight."""

import torch

from assay import kernel

VERB = "bench"
DETECTOR = "early"
WORKLOAD = "n=20000,dtype=fp32"
AT_ONCE = 8
last = [0, 0]


def gelu(x, out):
    torch.ops.aten.gelu.out(x, out=out)


def behind(tensor, step):
    return tensor.as_strided((AT_ONCE, *tensor.shape), (step, *tensor.stride()))


@kernel("gelu", variant="wrong", backend="njit")
def wrong(x, *, out):
    steps = [x.storage_offset() - last[0], out.storage_offset() - last[1]]
    last[:] = x.storage_offset(), out.storage_offset()
    if torch.equal(out[:4], torch.nn.functional.gelu(x[:4])):
        return
    room = out.untyped_storage().nbytes() // out.element_size() - out.storage_offset()
    if steps[1] >= out.numel() and AT_ONCE * steps[1] < room:
        gelu(behind(x, steps[0]), behind(out, steps[1]))
    else:
        gelu(x, out)


@kernel("gelu", variant="fixed", backend="njit")
def fixed(x, *, out):
    gelu(x, out)
