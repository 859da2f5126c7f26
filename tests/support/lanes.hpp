// Just enough of CUDA C++ to run one kernel on the CPU, for tests of its indices and its bit patterns: every thread of a
// block is a thread here, and those of a warp meet at a barrier where they exchange values or multiply matrices. Sums of a
// matrix product are exact until they are rounded to float; a GPU may cut bits off.
#pragma once
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>
using std::min; using std::max;
#define __device__
#define __forceinline__ inline
#define __global__
#define __launch_bounds__(...)
#define __shared__ static
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
inline uint4 make_uint4(unsigned a, unsigned b, unsigned c, unsigned d) { return {a, b, c, d}; }
inline uint2 make_uint2(unsigned a, unsigned b) { return {a, b}; }
struct Dim { unsigned x = 1, y = 1, z = 1; };
inline thread_local Dim threadIdx, blockIdx;
inline Dim blockDim, gridDim;
inline uint4 dynamic_shared[1 << 14];
inline std::unique_ptr<std::barrier<>> whole;
inline std::vector<std::unique_ptr<std::barrier<>>> warp_barrier;
inline unsigned slot[32][32][8];
inline void __syncthreads() { whole->arrive_and_wait(); }
inline float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
inline unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
inline unsigned bits_of(float f) { return __float_as_uint(f); } inline unsigned bits_of(unsigned u) { return u; }
template <typename T> T from_bits(unsigned u) { T t; memcpy(&t, &u, 4); return t; }
template <typename T> T __ldg(const T* p) { return *p; }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  unsigned long long v = (unsigned long long)b << 32 | a; unsigned r = 0;
  for (int i = 0; i < 4; ++i) r |= (unsigned)(v >> (8 * (s >> 4 * i & 7)) & 0xff) << 8 * i;
  return r;
}
template <typename T> T exchange(T v, int from) {
  int w = threadIdx.x / 32, l = threadIdx.x % 32;
  slot[w][l][0] = bits_of(v); warp_barrier[w]->arrive_and_wait();
  unsigned got = slot[w][from & 31][0]; warp_barrier[w]->arrive_and_wait();
  return from_bits<T>(got);
}
template <typename T> T __shfl_sync(unsigned, T v, int from) { return exchange(v, from); }
template <typename T> T __shfl_xor_sync(unsigned, T v, int x) { return exchange(v, (threadIdx.x % 32) ^ x); }
inline unsigned __reduce_max_sync(unsigned, unsigned v) {
  for (int x = 16; x; x /= 2) v = max(v, exchange(v, (threadIdx.x % 32) ^ x));
  return v;
}
// One operation, rounded once: -ffp-contract=off leaves it so.
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
// 16-bit formats
inline double rounded_to(double v, int fraction, int least, double most) {
  if (!std::isfinite(v) || v == 0) return v;
  int e; std::frexp(v, &e); e = max(e - 1, least);
  double s = std::ldexp(1.0, e - fraction), r = std::nearbyint(v / s) * s;
  return std::fabs(r) > most ? std::copysign(INFINITY, v) : r;
}
inline float half_value(unsigned b) {
  int s = b >> 15 & 1, e = b >> 10 & 31, f = b & 1023;
  double v = e == 31 ? (f ? NAN : INFINITY) : e ? std::ldexp(1024.0 + f, e - 25) : std::ldexp((double)f, -24);
  return s ? -v : v;
}
inline unsigned half_bits(double v) {
  v = rounded_to(v, 10, -14, 65504.0); unsigned s = std::signbit(v) ? 0x8000 : 0; double a = std::fabs(v);
  if (std::isnan(v)) return 0x7e00; if (std::isinf(v)) return s | 0x7c00; if (a == 0) return s;
  int e; std::frexp(a, &e); e -= 1;
  return e < -14 ? s | (unsigned)std::ldexp(a, 24) : s | (e + 15) << 10 | ((unsigned)std::ldexp(a, 10 - e) & 1023);
}
inline float bf_value(unsigned b) { return __uint_as_float(b << 16); }
inline unsigned bf_bits(double v) {
  if (std::isnan(v)) return 0x7fc0;
  return __float_as_uint((float)rounded_to(v, 7, -126, 3.3895313892515355e38)) >> 16;
}
struct __half { unsigned short b; };
struct __nv_bfloat16 { unsigned short b; };
inline float __half2float(__half h) { return half_value(h.b); }
inline __half __float2half_rn(float v) { return {(unsigned short)half_bits(v)}; }
inline float __bfloat162float(__nv_bfloat16 h) { return bf_value(h.b); }
inline __nv_bfloat16 __float2bfloat16_rn(float v) { return {(unsigned short)bf_bits(v)}; }
inline unsigned fma_half2(unsigned a, unsigned b, unsigned c) {
  unsigned r = 0;
  for (int i = 0; i < 32; i += 16) r |= half_bits((double)half_value(a >> i & 0xffff) * half_value(b >> i & 0xffff) + half_value(c >> i & 0xffff)) << i;
  return r;
}
inline unsigned fma_bf2(unsigned a, unsigned b, unsigned c) {
  unsigned r = 0;
  for (int i = 0; i < 32; i += 16) r |= bf_bits((double)bf_value(a >> i & 0xffff) * bf_value(b >> i & 0xffff) + bf_value(c >> i & 0xffff)) << i;
  return r;
}
template <float (*VALUE)(unsigned)> void warp_mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  int w = threadIdx.x / 32, l = threadIdx.x % 32, g = l / 4, t = l % 4;
  for (int i = 0; i < 4; ++i) slot[w][l][i] = a[i];
  slot[w][l][4] = b0, slot[w][l][5] = b1;
  warp_barrier[w]->arrive_and_wait();
  for (int i = 0; i < 4; ++i) {
    int row = g + i / 2 * 8, col = t * 2 + i % 2; double s = c[i];
    for (int kk = 0; kk < 16; ++kk) {
      int tt = kk % 8 / 2, h = kk % 2 * 16;
      unsigned av = slot[w][row % 8 * 4 + tt][row / 8 + kk / 8 * 2] >> h & 0xffff;
      unsigned bv = slot[w][col * 4 + tt][4 + kk / 8] >> h & 0xffff;
      s += (double)VALUE(av) * VALUE(bv);
    }
    c[i] = (float)s;
  }
  warp_barrier[w]->arrive_and_wait();
}
template <typename F> void launch(unsigned gx, unsigned gy, unsigned threads, F f) {
  blockDim = {threads}, gridDim = {gx, gy};
  for (unsigned y = 0; y < gy; ++y) for (unsigned x = 0; x < gx; ++x) {
    memset(dynamic_shared, 0xff, sizeof dynamic_shared);  // NaN
    whole = std::make_unique<std::barrier<>>(threads); warp_barrier.clear();
    for (unsigned w = 0; w < threads / 32; ++w) warp_barrier.push_back(std::make_unique<std::barrier<>>(32));
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; ++i) all.emplace_back([=] { threadIdx = {i}, blockIdx = {x, y}; f(); });
    for (auto& t : all) t.join();
  }
}
