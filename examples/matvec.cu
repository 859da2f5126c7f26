// A warp per row: neighbouring lanes read neighbouring columns, and the warp adds their sums.
#include <assay/reduce.cuh>
#include <assay/vector.cuh>

template <typename T>
__global__ void matvec(const T* a, const T* x, T* y, long long rows, long long cols) {
  const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float total = 0.0f;
  for (long long i = threadIdx.x; i < cols; i += 32) total += widen(a[row * cols + i]) * widen(x[i]);
  total = warp_reduce<Sum>(total);
  if (threadIdx.x == 0) y[row] = rounded<T>(total);
}
