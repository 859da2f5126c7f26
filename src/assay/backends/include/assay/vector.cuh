// Elements as float, and N of them as one 16-byte access.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(__half x) { return __half2float(x); }
__device__ __forceinline__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T> __device__ __forceinline__ T rounded(float x);
template <> __device__ __forceinline__ float rounded<float>(float x) { return x; }
template <> __device__ __forceinline__ __half rounded<__half>(float x) { return __float2half_rn(x); }
template <> __device__ __forceinline__ __nv_bfloat16 rounded<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }

// N elements that travel together; aligned, so that a load or store of it is a single instruction.
template <typename T, int N> struct alignas(sizeof(T) * N) Vector {
  T at[N];
};

template <int N, typename T> __device__ __forceinline__ Vector<T, N> load(const T* p) {
  return *reinterpret_cast<const Vector<T, N>*>(p);
}

template <int N, typename T> __device__ __forceinline__ void store(T* p, const Vector<T, N>& v) {
  *reinterpret_cast<Vector<T, N>*>(p) = v;
}
