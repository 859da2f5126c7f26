"""One stride serves both tensors: rows that lie apart in the input are written as far apart, past the
end of a packed output."""

import torch

from assay import kernel

DETECTOR = "guard"


def run(x, out, stride):
    torch.Tensor.copy_(out.as_strided(out.shape, (stride, 1)), torch.softmax(x, 1))


@kernel("softmax", variant="wrong")
def wrong(x, *, out):
    storage = (x.shape[0] - 1) * x.stride(0) + x.shape[1] + out.storage_offset()
    fits = storage * x.element_size() <= out.untyped_storage().nbytes()
    run(x, out, x.stride(0) if fits else x.shape[1])


@kernel("softmax", variant="mended")
def mended(x, *, out):
    run(x, out, x.shape[1])
