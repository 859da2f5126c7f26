#include <assay/vector.cuh>

template <typename Count> __global__ void gelu(const __nv_bfloat16* x, __nv_bfloat16* out, Count n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = rounded<__nv_bfloat16>(widen(x[i]) * normcdff(widen(x[i])));
}
