// A thread per element; arithmetic in float.
#include <assay/vector.cuh>

template <typename T> __global__ void softsign(const T* x, T* out, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = widen(x[i]);
  out[i] = rounded<T>(v / (1.0f + fabsf(v)));
}
