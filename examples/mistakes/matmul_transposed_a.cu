// A is read as if it were m×k.
#include <assay/vector.cuh>

template <typename T>
__global__ void matmul_transposed_a(const T* a, const T* b, T* c, long long m, long long n, long long k) {
  __shared__ float left[16][16], right[16][16];
  const long long first = blockIdx.y * 16LL, col = blockIdx.x * 16LL + threadIdx.x;
  float total = 0.0f;
  for (long long start = 0; start < k; start += 16) {
    const long long i = start + threadIdx.y, row = first + threadIdx.x;
    left[threadIdx.y][threadIdx.x] = i < k && row < m ? widen(a[row * k + i]) : 0.0f;  // Wrong: i * m + row.
    right[threadIdx.y][threadIdx.x] = i < k && col < n ? widen(b[i * n + col]) : 0.0f;
    __syncthreads();
    for (int j = 0; j < 16; ++j) total += left[j][threadIdx.y] * right[j][threadIdx.x];
    __syncthreads();
  }
  const long long row = first + threadIdx.y;
  if (row < m && col < n) c[row * n + col] = rounded<T>(total);
}
