"""Softmax in CuPy: a RawModule on the CUDA source beside it, one block per row, read online."""

from pathlib import Path

import cupy
import numpy as np

from assay import kernel
from assay.backends.cuda import ctype, vector_width
from assay.backends.cupy import array, options

_widths = {"float": (4, 1), "__half": (8, 1), "__nv_bfloat16": (8, 1)}
_module = cupy.RawModule(
    code=Path(__file__).with_name("kernel.cu").read_text(),
    options=options(),
    name_expressions=[f"softmax_online<{T}, {N}>" for T, widths in _widths.items() for N in widths],
)


@kernel("softmax", tune={"threads": [128, 256, 512, 1024]})
def softmax(x, *, out, threads=256):
    (rows, cols), stride = x.shape, x.stride(0)
    N = vector_width(x, out)
    N = N if cols % N == 0 and stride % N == 0 else 1
    if rows:
        launch = _module.get_function(f"softmax_online<{ctype(x)}, {N}>")
        launch((rows,), (threads,), (array(x), array(out), np.int64(cols), np.int64(stride)))
