// Through a tile of shared memory; without ALL only the threads that have an element come to the barrier.
template <bool ALL> __global__ void silu(const float* x, float* out, long long n) {
  __shared__ float tile[256];
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (ALL) {
    if (i < n) tile[threadIdx.x] = x[i];
    __syncthreads();
  } else if (i < n) {
    tile[threadIdx.x] = x[i];
    __syncthreads();
  }
  const float v = tile[threadIdx.x];
  if (i < n) out[i] = v / (1.0f + expf(-v));
}
