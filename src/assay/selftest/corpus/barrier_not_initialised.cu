// ReLU whose blocks copy their part of x into shared memory in bulk. Threads wait for the copy at an mbarrier.
#include <assay/bulk.cuh>

__device__ __forceinline__ float positive(float v) { return v <= 0.0f ? 0.0f : v; }

template <bool WAIT> __global__ void relu(const float* x, float* y, long long n) {
  constexpr int PART = 1024;
  __shared__ __align__(16) float part[PART];
  __shared__ Arrival arrival;
  const long long first = blockIdx.x * (long long)PART;
  x += first, y += first;
  if (first + PART > n || (unsigned long long)x % 16) {
    for (long long i = threadIdx.x; i < PART && first + i < n; i += blockDim.x) y[i] = positive(x[i]);
    return;
  }
  if (threadIdx.x == 0) {
    arrival.init();
    arrival.expect(sizeof part);
    arrival.copy(part, x, sizeof part);
  }
  if (WAIT) __syncthreads();  // the mbarrier is initialised
  arrival.wait(0);
  for (int i = threadIdx.x; i < PART; i += blockDim.x) y[i] = positive(part[i]);
}
