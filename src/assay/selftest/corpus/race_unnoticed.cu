// The mean and the variance of each row, one block per row; both sums go through the same shared memory.
__device__ float block_sum(float v, float* parts, bool wait) {
  for (int step = 16; step; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  if (wait) __syncthreads();  // the last call's readers are done
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0.0f;
  for (int k = 0; k < 8; ++k) v += parts[k];
  return v;
}

template <bool WAIT> __global__ void mean_var(const float* x, float* mean, float* var, long long cols) {
  __shared__ float parts[8];
  float total = 0.0f, squares = 0.0f;
  for (long long c = threadIdx.x; c < cols; c += blockDim.x) total += x[blockIdx.x * cols + c];
  const float mu = block_sum(total, parts, false) / cols;
  for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
    const float d = x[blockIdx.x * cols + c] - mu;
    squares += d * d;
  }
  squares = block_sum(squares, parts, WAIT);
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = mu;
    var[blockIdx.x] = squares / cols;
  }
}
