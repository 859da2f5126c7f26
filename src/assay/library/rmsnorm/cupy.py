"""RMSNorm in CuPy: a RawModule on the CUDA source beside it, one block per row, read twice."""

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
    name_expressions=[f"rmsnorm_long<{T}, {N}>" for T, widths in _widths.items() for N in widths],
)


@kernel("rmsnorm", tune={"threads": [128, 256, 512, 1024]})
def rmsnorm(x, weight, *, eps, out, threads=256):
    (rows, cols), stride = x.shape, x.stride(0)
    N = vector_width(x, out) if weight is None else vector_width(x, out, weight)
    N = N if cols % N == 0 and stride % N == 0 else 1
    if rows:
        launch = _module.get_function(f"rmsnorm_long<{ctype(x)}, {N}>")
        pointer = np.uintp(0) if weight is None else array(weight)
        args = (array(x), pointer, array(out), np.int64(cols), np.int64(stride), np.float32(eps))
        launch((rows,), (threads,), args)
