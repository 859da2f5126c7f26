// Columns beyond the last full group of 32 are dropped.
#include <assay/reduce.cuh>
#include <assay/vector.cuh>

template <typename T>
__global__ void matvec(const T* a, const T* x, T* y, long long rows, long long cols) {
  const long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float total = 0.0f;
  for (long long group = 0; group < cols / 32; ++group) {  // Wrong: rounded down.
    const long long i = group * 32 + threadIdx.x;
    total += widen(a[row * cols + i]) * widen(x[i]);
  }
  total = warp_reduce<Sum>(total);
  if (threadIdx.x == 0) y[row] = rounded<T>(total);
}
