// The root of the mean square instead of the root of the sum.
#include <assay/reduce.cuh>
#include <assay/vector.cuh>

template <typename T> __global__ void l2_norm(const T* x, T* out, long long cols, float eps) {
  x += blockIdx.x * cols, out += blockIdx.x * cols;
  float total = 0.0f;
  for (long long i = threadIdx.x; i < cols; i += blockDim.x) {
    const float v = widen(x[i]);
    total += v * v;
  }
  float norm = sqrtf(block_reduce<Sum>(total) / cols);  // Wrong: of the sum.
  norm = norm < eps ? eps : norm;  // fmaxf would drop NaN
  for (long long i = threadIdx.x; i < cols; i += blockDim.x) out[i] = rounded<T>(widen(x[i]) / norm);
}
