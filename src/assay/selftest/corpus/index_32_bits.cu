#include <assay/vector.cuh>

template <typename Index> __global__ void gelu(const __nv_bfloat16* x, __nv_bfloat16* out, long long n) {
  const Index first = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (Index i = first; i >= 0 && i < n; i += static_cast<Index>(gridDim.x) * blockDim.x)
    out[i] = rounded<__nv_bfloat16>(widen(x[i]) * normcdff(widen(x[i])));
}
