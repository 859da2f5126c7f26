// The sum of each row's products, one block per row, joined through shared memory.
template <bool BARRIER> __global__ void distance(const float* x, const float* y, float* out, long long cols) {
  __shared__ float parts[8];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x < 8) parts[threadIdx.x] = 0.0f;
  __syncthreads();
  float total = 0.0f;
  for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
    const float d = x[blockIdx.x * cols + c] - y[blockIdx.x * cols + c];
    total += d * d;
  }
  for (int step = 16; step; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  if (warp > 0) __nanosleep(100000);  // later warps are late, as on a busy multiprocessor
  if (lane == 0) parts[warp] = total;
  if (BARRIER) __syncthreads();
  if (threadIdx.x == 0) {
    total = 0.0f;
    for (int k = 0; k < 8; ++k) total += reinterpret_cast<volatile float*>(parts)[k];
    out[blockIdx.x] = sqrtf(total);
  }
}
