// Loads and stores that tell the caches what to expect.
#pragma once
#include <assay/vector.cuh>

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
