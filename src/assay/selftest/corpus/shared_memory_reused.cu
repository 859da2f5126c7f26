// RMSNorm, blocks that go on to further rows; the partial sums of each row go through the same shared memory.
template <bool WAIT>
__global__ void rmsnorm(const float* x, const float* weight, float* out, long long rows, long long cols, float eps) {
  __shared__ float parts[8];
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    float total = 0.0f;
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) total += x[row * cols + c] * x[row * cols + c];
    for (int step = 16; step; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = total;
    __syncthreads();
    total = 0.0f;
    for (int k = 0; k < 8; ++k) total += parts[k];
    const float scale = rsqrtf(total / cols + eps);
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
      out[row * cols + c] = x[row * cols + c] * scale * (weight ? weight[c] : 1.0f);
    }
    if (WAIT) __syncthreads();  // the next row's partial sums overwrite these
  }
}
