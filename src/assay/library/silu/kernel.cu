// SiLU and its backward pass, one 16-byte vector per thread, arithmetic in float.
#include <assay/short_float.cuh>
#include <assay/vector.cuh>

// __fdividef is one reciprocal and a multiply. It gives 0 for a divisor beyond 2¹²⁶, where the true result is as good as 0.
template <typename T> __device__ __forceinline__ float value(float x) {
  return is_short<T> ? short_silu(x) : __fdividef(x, 1.0f + expf(-x));
}

__device__ __forceinline__ float slope(float x) {
  const float sigma = __fdividef(1.0f, 1.0f + expf(-x));
  return sigma * (1.0f + x * (1.0f - sigma));
}

template <typename T, int N> __global__ void silu(const T* x, T* y, long long n) {
  const long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * N;
  if (i + N <= n) {
    Vector<T, N> v = load<N>(x + i);
#pragma unroll
    for (int k = 0; k < N; ++k) v.at[k] = rounded<T>(value<T>(widen(v.at[k])));
    store<N>(y + i, v);
  } else {
    for (long long k = i; k < n; ++k) y[k] = rounded<T>(value<T>(widen(x[k])));
  }
}

template <typename T, int N> __global__ void silu_backward(const T* dy, const T* x, T* dx, long long n) {
  const long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * N;
  if (i + N <= n) {
    const Vector<T, N> g = load<N>(dy + i), v = load<N>(x + i);
    Vector<T, N> d;
#pragma unroll
    for (int k = 0; k < N; ++k) d.at[k] = rounded<T>(widen(g.at[k]) * slope(widen(v.at[k])));
    store<N>(dx + i, d);
  } else {
    for (long long k = i; k < n; ++k) dx[k] = rounded<T>(widen(dy[k]) * slope(widen(x[k])));
  }
}
