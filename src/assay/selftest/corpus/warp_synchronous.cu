// The distance of each row; the last 32 parts are joined within a warp, the lanes taken to run in step.
template <bool WAIT> __global__ void distance(const float* x, const float* y, float* out, long long cols) {
  __shared__ volatile float parts[64];
  const int t = threadIdx.x;
  float total = 0.0f;
  for (long long c = t; c < cols; c += 64) {
    const float d = x[blockIdx.x * cols + c] - y[blockIdx.x * cols + c];
    total += d * d;
  }
  parts[t] = total;
  __syncthreads();
  if (t < 32) {
    for (int step = 32; step; step /= 2) {
      const float sum = parts[t] + parts[t + step];
      if (WAIT) __syncwarp();
      parts[t] = sum;
      if (WAIT) __syncwarp();
    }
    if (t == 0) out[blockIdx.x] = sqrtf(parts[0]);
  }
}
