"""LayerNorm in CuPy: the CUDA source beside it as a RawModule, one instance at a time."""

from functools import cache
from pathlib import Path

import cupy
import numpy as np

from assay import kernel
from assay.backends.cuda import cdiv, ctype
from assay.backends.cupy import array, options
from assay.library.layernorm.cuda import split

code = Path(__file__).with_name("kernel.cu").read_text()


@cache
def instance(name):
    return cupy.RawModule(code=code, options=options(), name_expressions=[name]).get_function(name)


def pointer(tensor):
    return np.uintp(0) if tensor is None else array(tensor)


@kernel("layernorm", tune={"keep": [1, 2, 4, 8]})
def layernorm(x, weight, bias, *, eps, out, mean=None, rstd=None, keep=4):
    rows, cols = x.shape
    width, group, kept = split(x, (weight, bias, out), keep, threads=1024, vectors=8, scalars=32)
    threads = max(128, group)
    if rows:
        instance(f"layernorm<{ctype(x)}, {width}, {group}, {kept}>")(
            (cdiv(rows, threads // group),),
            (threads,),
            (
                *map(pointer, (x, weight, bias, out, mean, rstd)),
                *map(np.int64, (rows, cols, x.stride(0))),
                np.float32(eps),
            ),
        )
