// A warp per pair of rows: three sums in one pass.
#include <assay/reduce.cuh>
#include <assay/vector.cuh>

template <typename T>
__global__ void cosine_similarity(const T* a, const T* b, T* out, long long rows, long long dim) {
  const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float both = 0.0f, left = 0.0f, right = 0.0f;
  for (long long i = threadIdx.x; i < dim; i += 32) {
    const float v = widen(a[row * dim + i]), u = widen(b[row * dim + i]);
    both += v * u, left += v * v, right += u * u;
  }
  both = warp_reduce<Sum>(both), left = warp_reduce<Sum>(left), right = warp_reduce<Sum>(right);
  const float size = fmaxf(sqrtf(left), 1e-8f) * fmaxf(sqrtf(right), 1e-8f);
  if (threadIdx.x == 0) out[row] = rounded<T>(both / size);
}
