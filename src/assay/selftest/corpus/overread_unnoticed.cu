// A block stages 256 elements in shared memory, in reverse, before the bound is looked at.
template <bool BOUND> __global__ void silu(const float* x, float* out, long long n) {
  __shared__ float tile[256];
  const int from = 255 - threadIdx.x;
  const long long start = blockIdx.x * 256LL, i = start + threadIdx.x;
  if (!BOUND || start + from < n) tile[from] = x[start + from];
  __syncthreads();
  const float v = tile[threadIdx.x];
  if (i < n) out[i] = v / (1.0f + expf(-v));
}
