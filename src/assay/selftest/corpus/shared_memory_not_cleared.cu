// The sum of each row's squared differences: a tree over 256 words of shared memory, one block per row.
template <bool CLEARED> __global__ void distance(const float* x, const float* y, float* out, long long cols) {
  __shared__ float parts[256];
  float total = 0.0f;
  for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
    const float d = x[blockIdx.x * cols + c] - y[blockIdx.x * cols + c];
    total += d * d;
  }
  if (CLEARED || threadIdx.x < cols) parts[threadIdx.x] = total;
  __syncthreads();
  for (int half = 128; half; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(parts[0]);
}
