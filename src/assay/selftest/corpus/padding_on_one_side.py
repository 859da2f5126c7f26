"""All the padding goes to the left and the top, as some frameworks' "same" does for even filters: the
sizes agree, the picture is shifted."""

from torch.nn.functional import pad, unfold

from assay import kernel

DETECTOR = "values"


def run(x, weight, bias, stride, edges, out):
    windows = unfold(pad(x, edges), weight.shape[2:], stride=stride)
    sums = (weight.flatten(1) @ windows).view(out.shape)
    out.copy_(sums if bias is None else sums + bias[:, None, None])


@kernel("conv2d", variant="wrong")
def wrong(x, weight, bias, *, stride, padding, out):
    run(x, weight, bias, stride, (2 * padding, 0, 2 * padding, 0), out)


@kernel("conv2d", variant="fixed")
def fixed(x, weight, bias, *, stride, padding, out):
    run(x, weight, bias, stride, (padding, padding, padding, padding), out)
