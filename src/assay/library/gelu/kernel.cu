// GELU and its backward pass in 16-byte vectors, arithmetic in float. Results of 16 bits take Φ from a
// polynomial and the special-function unit: erff and tanhf alone would cost more time than the memory does.
#include <assay/hint.cuh>
#include <assay/short_float.cuh>

struct Erf {
  static __device__ __forceinline__ float phi(float x) { return 0.5f * (1.0f + erff(x * 0.7071067811865476f)); }
  template <typename T> static __device__ __forceinline__ float value(float x) {
    return is_short<T> ? short_gelu(x) : x * phi(x);
  }
  template <typename T> static __device__ __forceinline__ float slope(float x) {
    return is_short<T> ? short_gelu_slope(x) : phi(x) + x * expf(-0.5f * x * x) * 0.3989422804014327f;
  }
};

struct Tanh {
  static constexpr float a = 0.7978845608028654f, b = 0.044715f;
  template <typename T> static __device__ __forceinline__ float value(float x) {
    return is_short<T> ? short_gelu_tanh(x) : 0.5f * x * (1.0f + tanhf(a * (x + b * x * x * x)));
  }
  template <typename T> static __device__ __forceinline__ float slope(float x) {
    if (fabsf(x) > 1e4f) return x > 0.0f;  // x³ overflows far out, where the slope is flat
    const float t = tanhf(a * (x + b * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * a * (1.0f + 3.0f * b * x * x);
  }
};

// K vectors a thread, a block's width apart, all loaded before the first is used.
template <typename T, int N, typename F, int K = 1, Hint LOAD = plain, Hint STORE = plain>
__global__ void gelu(const T* x, T* y, long long n) {
  const long long i = (blockIdx.x * (long long)(blockDim.x * K) + threadIdx.x) * N;
  const int apart = blockDim.x * N;
  if (i + (K - 1) * apart + N <= n) {
    Vector<T, N> v[K];
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] = load<N, LOAD>(x + i + k * apart);
#pragma unroll
    for (int k = 0; k < K; ++k) {
#pragma unroll
      for (int j = 0; j < N; ++j) v[k].at[j] = rounded<T>(F::template value<T>(widen(v[k].at[j])));
      store<N, STORE>(y + i + k * apart, v[k]);
    }
  } else {
    for (int k = 0; k < K; ++k) {
      const long long from = i + k * apart, to = K == 1 ? n : min(n, from + N);
      for (long long j = from; j < to; ++j) y[j] = rounded<T>(F::template value<T>(widen(x[j])));
    }
  }
}

template <typename T, int N, typename F> __global__ void gelu_backward(const T* dy, const T* x, T* dx, long long n) {
  const long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * N;
  if (i + N <= n) {
    const Vector<T, N> g = load<N>(dy + i), v = load<N>(x + i);
    Vector<T, N> d;
#pragma unroll
    for (int k = 0; k < N; ++k) d.at[k] = rounded<T>(widen(g.at[k]) * F::template slope<T>(widen(v.at[k])));
    store<N>(dx + i, d);
  } else {
    for (long long k = i; k < n; ++k) dx[k] = rounded<T>(widen(dy[k]) * F::template slope<T>(widen(x[k])));
  }
}
