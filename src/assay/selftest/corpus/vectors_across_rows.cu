#include <assay/vector.cuh>

// N columns per thread; a row's start is aligned only if cols is a multiple of N.
template <int N>
__global__ void col_scale(const float* x, const float* scale, float* out, long long cols, long long across) {
  const long long c = (blockIdx.x % across * blockDim.x + threadIdx.x) * N, row = blockIdx.x / across * cols;
  if (c + N <= cols) {
    Vector<float, N> v = load<N>(x + row + c), s = load<N>(scale + c);
    for (int k = 0; k < N; ++k) v.at[k] *= s.at[k];
    store<N>(out + row + c, v);
  } else {
    for (long long k = c; k < cols; ++k) out[row + k] = x[row + k] * scale[k];
  }
}
