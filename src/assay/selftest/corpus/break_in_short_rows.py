"""Short rows have a loop of their own, which is left with `break`: the typical size never compiles it."""

import triton
import triton.language as tl

from assay import kernel

DETECTOR = "build or exception"


@triton.jit
def _rows(x, scale, out, cols, SHORT: tl.constexpr, BREAKS: tl.constexpr, BLOCK: tl.constexpr):
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    factor = tl.load(scale + row)
    for start in range(0, cols, BLOCK):
        inside = start + c < cols
        at = row * cols + start + c
        tl.store(out + at, tl.load(x + at, mask=inside) * factor, mask=inside)
        if SHORT and BREAKS:
            break


def run(x, scale, out, breaks):
    rows, cols = x.shape
    if x.numel():
        _rows[(rows,)](x, scale, out, cols, cols <= 128, breaks, 128)


@kernel("row_scale", variant="wrong", dtypes=("fp32",))
def wrong(x, scale, *, out):
    run(x, scale, out, True)


@kernel("row_scale", variant="fixed", dtypes=("fp32",))
def fixed(x, scale, *, out):
    run(x, scale, out, False)
