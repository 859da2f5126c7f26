"""Mean and variance in CuPy: a RawModule, one block per row; the second pass finds it in the cache."""

import cupy
import numpy as np

from assay import kernel
from assay.backends.cupy import array, options
from assay.dtype import dtype

CODE = """
#include <assay/reduce.cuh>
#include <assay/vector.cuh>

template <typename T> __global__ void mean_var(const T* x, T* mean, T* var, long long cols) {
  const T* row = x + blockIdx.x * cols;
  float sum = 0.0f, squares = 0.0f;
  for (long long i = threadIdx.x; i < cols; i += blockDim.x) sum += widen(row[i]);
  const float mu = block_reduce<Sum>(sum) / cols;
  for (long long i = threadIdx.x; i < cols; i += blockDim.x) {
    const float deviation = widen(row[i]) - mu;
    squares += deviation * deviation;
  }
  squares = block_reduce<Sum>(squares);
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = rounded<T>(mu);
    var[blockIdx.x] = rounded<T>(squares / cols);
  }
}
"""
INSTANCES = ["mean_var<float>", "mean_var<__half>", "mean_var<__nv_bfloat16>"]
_module = cupy.RawModule(code=CODE, options=options(), name_expressions=INSTANCES)


@kernel("mean_var", tune={"threads": [128, 256, 512]})
def mean_var(x, *, out, var, threads=256):
    rows, cols = x.shape
    if rows:
        run = _module.get_function(f"mean_var<{dtype(x.dtype).ctype}>")
        run((rows,), (threads,), (array(x), array(out), array(var), np.int64(cols)))
