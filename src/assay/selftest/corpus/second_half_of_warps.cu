// The distance of each row, one block of 1024 threads per row; the warps' parts are joined by the first warp.
template <int WARPS> __global__ void distance(const float* x, const float* y, float* out, long long cols) {
  __shared__ double parts[32];
  const long long row = blockIdx.x * cols;
  double total = 0.0;
  for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
    const float d = x[row + c] - y[row + c];
    total += d * d;
  }
  for (int step = 16; step; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = total;
  __syncthreads();
  if (threadIdx.x < 32) {
    total = threadIdx.x < WARPS ? parts[threadIdx.x] : 0.0;
    for (int step = 16; step; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
    if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(total);
  }
}
