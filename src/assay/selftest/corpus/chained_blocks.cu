#include <assay/reduce.cuh>

// Each block's share of the sum. CHAINED: each adds what the block before it has left, and does not wait for it.
template <bool CHAINED> __global__ void sum(const float* x, volatile float* running, long long n, long long share) {
  const long long first = blockIdx.x * share, last = min(n, first + share);
  double total = 0.0;
  for (long long i = first + threadIdx.x; i < last; i += blockDim.x) total += x[i];
  if (CHAINED && blockIdx.x % 2 == 0) __nanosleep(500000);  // every other block is late, as on a busy device
  const float part = block_reduce<Sum>(total);
  if (threadIdx.x == 0) running[blockIdx.x] = CHAINED && blockIdx.x ? running[blockIdx.x - 1] + part : part;
}
