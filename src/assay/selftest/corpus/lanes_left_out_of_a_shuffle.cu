template <bool MENDED>
__global__ void row_sums(const float* x, float* out, long long cols) {
  const float* row = x + blockIdx.x * cols;
  float v = 0;
  if (MENDED) {
    for (int c = threadIdx.x; c < cols; c += 32) v += row[c];
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
  } else if (threadIdx.x < cols) {
    for (int c = threadIdx.x; c < cols; c += 32) v += row[c];
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(__activemask(), v, d);
  }
  if (threadIdx.x == 0) out[blockIdx.x] = v;
}
