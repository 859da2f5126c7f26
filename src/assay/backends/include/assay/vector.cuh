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

// What the caches are told of 16 bytes: nothing; that they are used once (cs); to keep them out of the L1 (cg; past_l1
// does so for memory that nobody writes meanwhile).
enum Hint { plain, cs, cg, past_l1 };

template <Hint H> __device__ __forceinline__ uint4 read_as(const uint4* p) {
  if constexpr (H == cs) return __ldcs(p);
  if constexpr (H == cg) return __ldcg(p);
  if constexpr (H == past_l1) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
  }
  return *p;
}

template <Hint H> __device__ __forceinline__ void write_as(uint4* p, const uint4& v) {
  if constexpr (H == cs)
    __stcs(p, v);
  else if constexpr (H == cg)
    __stcg(p, v);
  else
    *p = v;
}

template <int N, Hint H, typename T> __device__ __forceinline__ Vector<T, N> load(const T* p) {
  if constexpr (H == plain || sizeof(T) * N < 16) {
    return load<N>(p);
  } else {
    const uint4 v = read_as<H>(reinterpret_cast<const uint4*>(p));
    return reinterpret_cast<const Vector<T, N>&>(v);
  }
}

template <int N, Hint H, typename T> __device__ __forceinline__ void store(T* p, const Vector<T, N>& v) {
  if constexpr (H == plain || sizeof(v) < 16)
    store<N>(p, v);
  else
    write_as<H>(reinterpret_cast<uint4*>(p), reinterpret_cast<const uint4&>(v));
}
