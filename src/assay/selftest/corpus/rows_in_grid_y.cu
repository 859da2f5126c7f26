__global__ void row_scale(const float* x, const float* scale, float* out, long long rows, long long cols) {
  const long long c = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  for (long long row = blockIdx.y; row < rows; row += gridDim.y)
    if (c < cols) out[row * cols + c] = x[row * cols + c] * scale[row];
}
