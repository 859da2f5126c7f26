template <typename Index> __global__ void relu(const float* x, float* out, long long n) {
  const long long i = (long long)(Index(blockDim.x) * Index(blockIdx.x) + Index(threadIdx.x));
  if (i < n) out[i] = x[i] <= 0 ? 0 : x[i];
}
