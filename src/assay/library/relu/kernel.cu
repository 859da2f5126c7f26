// ReLU and its backward pass, one 16-byte vector per thread. NaN is not ≤ 0, so it is passed on.
#include <assay/vector.cuh>

template <typename T> __device__ __forceinline__ T where_positive(T x, T value) {
  return widen(x) <= 0.0f ? rounded<T>(0.0f) : value;
}

template <typename T, int N> __global__ void relu(const T* x, T* y, long long n) {
  const long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * N;
  if (i + N <= n) {
    Vector<T, N> v = load<N>(x + i);
#pragma unroll
    for (int k = 0; k < N; ++k) v.at[k] = where_positive(v.at[k], v.at[k]);
    store<N>(y + i, v);
  } else {
    for (long long k = i; k < n; ++k) y[k] = where_positive(x[k], x[k]);
  }
}

template <typename T, int N> __global__ void relu_backward(const T* dy, const T* x, T* dx, long long n) {
  const long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * N;
  if (i + N <= n) {
    const Vector<T, N> g = load<N>(dy + i), v = load<N>(x + i);
    Vector<T, N> d;
#pragma unroll
    for (int k = 0; k < N; ++k) d.at[k] = where_positive(v.at[k], g.at[k]);
    store<N>(dx + i, d);
  } else {
    for (long long k = i; k < n; ++k) dx[k] = where_positive(x[k], dy[k]);
  }
}
