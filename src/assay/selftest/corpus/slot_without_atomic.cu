// Each block's sum through eight slots of shared memory; the lanes of a warp meet in each.
template <bool ATOMIC> __global__ void sum(const float* x, float* parts, long long n) {
  __shared__ double slots[8];
  if (threadIdx.x < 8) slots[threadIdx.x] = 0.0;
  __syncthreads();
  double total = 0.0;
  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL) total += x[i];
  if (ATOMIC)
    atomicAdd(&slots[threadIdx.x % 8], total);
  else
    slots[threadIdx.x % 8] += total;
  __syncthreads();
  if (threadIdx.x == 0) {
    total = 0.0;
    for (int k = 0; k < 8; ++k) total += slots[k];
    parts[blockIdx.x] = total;
  }
}
