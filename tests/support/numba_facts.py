"""Small Numba CUDA kernels, run as this process runs them: on a GPU, or in the simulator as a worker patches it. Writes
what each gave: `python numba_facts.py FILE [plain]` (`plain`: the simulator as it comes)."""

import math
import os
import pickle
import sys
from pathlib import Path

import numpy as np

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
if SIMULATED and sys.argv[2:] != ["plain"]:
    from assay.backends import backend

    backend("numba").prepare("numba-sim")

from numba import cuda, float32  # noqa: E402

TENTH = 0.1
RESULTS = {}


@cuda.jit
def literals(x, out):
    i = cuda.grid(1)
    out[i] = x[i] * 0.1


@cuda.jit
def globals_(x, out):
    i = cuda.grid(1)
    out[i] = x[i] * TENTH


@cuda.jit
def argument(x, out, tenth):
    i = cuda.grid(1)
    out[i] = x[i] * tenth


@cuda.jit
def narrow_functions(x, out):
    i = cuda.grid(1)
    out[i] = math.exp(x[i]) - math.exp(np.float64(x[i]))


@cuda.jit
def beyond(x, out):
    i = cuda.grid(1)
    if i == 0:
        out[i] = math.exp(x[i] * np.float32(1e4))
    elif i == 1:
        out[i] = math.log(x[i] * np.float32(0))
    elif i == 2:
        out[i] = math.sqrt(-np.float32(1) - x[i] * x[i])
    elif i == 3:
        out[i] = np.float32(1) / (x[i] - x[i])


@cuda.jit
def bytes_(x, out):
    i = cuda.grid(1)
    out[i] = x[i] * 300 + x[i]


@cuda.jit
def extremes(x, out):
    i = cuda.grid(1)
    out[i] = max(x[i], np.float32(0))


@cuda.jit
def unwritten_shared(x, out):
    tile = cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    if i < 16:
        tile[i] = x[i]
    cuda.syncthreads()
    out[cuda.grid(1)] = tile[i]


@cuda.jit
def unwritten_local(x, out):
    own = cuda.local.array(4, float32)
    out[cuda.grid(1)] = own[1] + x[0]


@cuda.jit
def left_by_the_last_block(x, out):
    total = cuda.shared.array(1, float32)
    if cuda.blockIdx.x == 0 and cuda.threadIdx.x == 0:
        total[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(total, 0, x[cuda.grid(1)])
    cuda.syncthreads()
    out[cuda.grid(1)] = total[0]


@cuda.jit
def two_on_one_line(x, out):
    a, b = cuda.shared.array(32, float32), cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    a[i] = x[i]
    b[i] = 0
    cuda.syncthreads()
    out[cuda.grid(1)] = a[i]


@cuda.jit
def too_much_shared(x, out):
    tile = cuda.shared.array((128, 128), float32)
    tile[0, cuda.threadIdx.x] = x[cuda.threadIdx.x]
    out[cuda.grid(1)] = tile[0, cuda.threadIdx.x]


@cuda.jit
def warp_sum(x, out):
    v = x[cuda.grid(1)]
    for delta in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, delta)
    if cuda.laneid == 0:
        out[cuda.grid(1) // 32] = v


@cuda.jit
def ballots(x, out):
    positive = cuda.ballot_sync(0xFFFFFFFF, x[cuda.grid(1)] > 0)
    out[cuda.grid(1)] = cuda.popc(positive)


@cuda.jit
def bit_functions(x, out):
    i = cuda.grid(1)
    out[i] = cuda.clz(x[i]) * 1000 + cuda.popc(x[i]) * 100 + cuda.ffs(x[i])


@cuda.jit
def fused(x, out):
    i = cuda.grid(1)
    out[i] = cuda.fma(x[i], x[i], -(x[i] * x[i]))


@cuda.jit(fastmath=True)
def fast(x, out):
    i = cuda.grid(1)
    out[i] = math.exp(x[i])


@cuda.jit
def plain(x, out):
    out[cuda.grid(1) % 32] = x[0]


def keep(function, x, grid=1, block=32, out=np.float32, extra=(), name=""):
    result = np.zeros(grid * block if isinstance(grid, int) else 32, out)
    name = name or (getattr(function, "__name__", None) or function.py_func.__name__)
    try:
        function[grid, block](x, result, *extra)
    except Exception as error:
        RESULTS[name] = f"{type(error).__name__}: {error}"
    else:
        RESULTS[name] = result


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    RESULTS["x"] = x
    keep(literals, x, out=np.float64)
    keep(globals_, x, out=np.float64)
    keep(argument, x, out=np.float64, extra=(0.1,))
    keep(narrow_functions, x, out=np.float64)
    keep(beyond, np.abs(x))
    keep(bytes_, np.arange(200, 232, dtype=np.uint8), out=np.int32)
    keep(extremes, np.full(32, np.nan, np.float32))
    for function in (unwritten_shared, unwritten_local, two_on_one_line, warp_sum, ballots, fused, fast):
        keep(function, x)
    keep(left_by_the_last_block, x, grid=2)
    keep(too_much_shared, x)
    keep(bit_functions, np.arange(-16, 16, dtype=np.int32), out=np.int32)
    keep(plain, x, grid=1, block=2048, name="large_block")
    keep(plain, x, grid=(1, 70000), name="large_grid")
    keep(plain, x, grid=(0, 1), name="empty_grid")
    try:
        keep(cuda.jit(max_registers=32)(plain.py_func), x, name="compiler_options")
    except TypeError as error:
        RESULTS["compiler_options"] = str(error)
    Path(sys.argv[1]).write_bytes(pickle.dumps(RESULTS))
