#include <assay/vector.cuh>

template <int N> __global__ void gelu(const float* x, float* out, long long n) {
  const long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * N;
  if (i + N <= n) {
    Vector<float, N> v = load<N>(x + i);
    for (int k = 0; k < N; ++k) v.at[k] *= normcdff(v.at[k]);
    store<N>(out + i, v);
  } else {
    for (long long k = i; k < n; ++k) out[k] = x[k] * normcdff(x[k]);
  }
}
