// A row that is read once and stays in registers: GROUP threads hold K vectors of 16 bytes each and nothing is left
// over, so no element needs a bounds check. GROUP is 32, a warp with a row of its own, or the whole block. A row that is
// too long for one block is shared by the CLUSTER blocks of a cluster, each with as much of it.
#pragma once
#include <assay/cluster.cuh>
#include <assay/hint.cuh>
#include <assay/reduce.cuh>

// The sum of N floats in pairs: a short chain, and fewer roundings than one after another.
template <int N> __device__ __forceinline__ float pairwise(const float (&f)[N]) {
  if constexpr (N == 1) {
    return f[0];
  } else {
    float half[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) half[i] = f[2 * i] + f[2 * i + 1];
    return pairwise(half);
  }
}

// Adds the squares of N floats in two chains: a multiply-add each.
template <int N> __device__ __forceinline__ float add_squares(const float (&f)[N], float even) {
  float odd = 0.0f;
#pragma unroll
  for (int i = 0; i < N; i += 2) even = fmaf(f[i], f[i], even), odd = fmaf(f[i + 1], f[i + 1], odd);
  return even + odd;
}

// A value joined over the group, of each block of the cluster; every thread gets the result. Each USE has shared memory
// of its own, so that nobody must wait for the readers of the last one: a kernel may have each USE once, or once in a
// loop over rows with a barrier between two of them, and `turn` as their number.
template <int GROUP, typename R, int USE, int CLUSTER = 1>
__device__ __forceinline__ float joined(float v, int turn = 0) {
  v = warp_reduce<R>(v);
  if constexpr (GROUP > 32) {
    constexpr int WARPS = GROUP / 32, LANES = WARPS <= 2 ? 2 : WARPS <= 4 ? 4 : WARPS <= 8 ? 8 : WARPS <= 16 ? 16 : 32;
    __shared__ float of_warp[WARPS];
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
    __syncthreads();
    const int other = threadIdx.x % LANES;
    v = warp_reduce<R, LANES>(other < WARPS ? of_warp[other] : R::identity());
  }
  if constexpr (CLUSTER > 1) v = cluster_reduce<CLUSTER, R, USE>(v, turn);
  return v;
}

// s / N, rounded once. A division has a slow path, a call that costs registers; this has none.
template <int N> __device__ __forceinline__ float over(float s) {
  constexpr float inverse = 1.0f / N;
  const float q = s * inverse;
  if constexpr ((N & (N - 1)) == 0) return q;
  const float corrected = fmaf(fmaf(-q, float(N), s), inverse, q);
  return corrected == corrected ? corrected : q;  // ∞ − ∞
}

// 1/√v within an ulp: the hardware's is within two, a step of Newton's takes the rest.
__device__ __forceinline__ float inverse_root(float v) {
  const float r = rsqrtf(v), corrected = fmaf(0.5f * r, fmaf(-v * r, r, 1.0f), r);
  return corrected == corrected ? corrected : r;  // v = ∞
}

// Both elements of a word as floats. A bf16 is the upper half of its float: one instruction an element, where taking
// the halves apart first would cost another.
__device__ __forceinline__ float2 widened(unsigned word, __nv_bfloat16) {
  return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u));
}
__device__ __forceinline__ float2 widened(unsigned word, __half) {
  return __half22float2(reinterpret_cast<const __half2&>(word));
}

template <typename T, int GROUP, int K, int CLUSTER = 1> struct WholeRow {
  static constexpr int N = 16 / sizeof(T), COLS = CLUSTER * GROUP * K * N;
  uint4 kept[K];  // packed, as they came: as floats 16-bit elements would take twice the registers

  // The row of this thread. A block of several warps has a row for each, or one for all; a cluster has one.
  static __device__ __forceinline__ long long index() {
    if constexpr (CLUSTER > 1) return blockIdx.x / CLUSTER;
    return GROUP == 32 ? blockIdx.x * (long long)(blockDim.x / 32) + threadIdx.x / 32 : blockIdx.x;
  }

  // Whether this is the one thread of the row that writes what the row has once.
  static __device__ __forceinline__ bool first() {
    if constexpr (CLUSTER > 1) return threadIdx.x == 0 && blockIdx.x % CLUSTER == 0;
    return threadIdx.x % GROUP == 0;
  }

  // This thread's k-th vector of a row, or of what goes with it, as weight and bias. Neighbouring threads have
  // neighbouring vectors, and all are one address and a constant.
  static __device__ __forceinline__ const uint4* vector(const T* p, int k) {
    int lane = threadIdx.x % GROUP;
    if constexpr (CLUSTER > 1) lane += int(blockIdx.x % CLUSTER) * (K * GROUP);
    return reinterpret_cast<const uint4*>(p) + lane + k * GROUP;
  }
  static __device__ __forceinline__ uint4* vector(T* p, int k) { return const_cast<uint4*>(vector((const T*)p, k)); }

  template <Hint H = plain> __device__ __forceinline__ void read(const T* row) {
    if constexpr (CLUSTER > 1) cluster_start<CLUSTER>();
#pragma unroll
    for (int k = 0; k < K; ++k) kept[k] = read_as<H>(vector(row, k));
    if constexpr (CLUSTER > 1) cluster_started();
  }

  // Past the L1 cache, which keeps what every row needs: weight and bias.
  __device__ __forceinline__ void read_past_l1(const T* row) { read<past_l1>(row); }

  // The k-th vector as floats.
  __device__ __forceinline__ void at(int k, float (&f)[N]) const {
    uint4 v = kept[k];
    // Hides that every pass sees the same bits: the compiler would keep them unpacked as well.
    if constexpr (sizeof(T) == 2) asm volatile("" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w));
    unpack(v, f);
  }

  // What a weight or bias has for this thread's k-th vector, as floats.
  static __device__ __forceinline__ void beside(const T* p, int k, float (&f)[N]) { unpack(*vector(p, k), f); }

  static __device__ __forceinline__ void unpack(const uint4& v, float (&f)[N]) {
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (sizeof(T) == 4) {
        f[i] = __uint_as_float(words[i]);
      } else {
        const float2 two = widened(words[i], T());
        f[2 * i] = two.x, f[2 * i + 1] = two.y;
      }
    }
  }

  static __device__ __forceinline__ uint4 packed(const float (&f)[N]) {
    Vector<T, N> v;
#pragma unroll
    for (int j = 0; j < N; ++j) v.at[j] = rounded<T>(f[j]);
    return reinterpret_cast<const uint4&>(v);
  }

  // f(floats) for every vector of this thread.
  template <typename F> __device__ __forceinline__ void each(F f) const {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      float v[N];
      at(k, v);
      f(v);
    }
  }
};

// Mean, and the sum of squared differences from it, in two passes over the registers.
struct Spread {
  float mean, squares;
};

template <typename T, int GROUP, int K, int CLUSTER>
__device__ __forceinline__ Spread spread(const WholeRow<T, GROUP, K, CLUSTER>& row, int turn = 0) {
  using Row = WholeRow<T, GROUP, K, CLUSTER>;
  float sum = 0.0f, squares = 0.0f;
  row.each([&](float (&f)[Row::N]) { sum += pairwise(f); });
  const float mean = over<Row::COLS>(joined<GROUP, Sum, 0, CLUSTER>(sum, turn));
  row.each([&](float (&f)[Row::N]) {
#pragma unroll
    for (int j = 0; j < Row::N; ++j) f[j] -= mean;
    squares = add_squares(f, squares);
  });
  return {mean, joined<GROUP, Sum, 1, CLUSTER>(squares, turn)};
}

// Mean, and 1/√(variance + eps).
struct Moments {
  float mean, rstd;
};

template <typename T, int GROUP, int K, int CLUSTER>
__device__ __forceinline__ Moments moments(const WholeRow<T, GROUP, K, CLUSTER>& row, float eps, int turn = 0) {
  const Spread s = spread(row, turn);
  return {s.mean, inverse_root(over<WholeRow<T, GROUP, K, CLUSTER>::COLS>(s.squares) + eps)};
}

// Few long rows are cut into parts of equal length, a block for each: first what each part has, then, all joined, the
// result. `seen` has two floats for each part.
template <typename T> using Part = WholeRow<T, 256, 4>;

template <typename T>
__device__ __forceinline__ void see_part(const T* x, float* seen, long long stride, long long parts) {
  Part<T> part;
  part.read(x + blockIdx.x / unsigned(parts) * stride + blockIdx.x % unsigned(parts) * Part<T>::COLS);
  const Spread s = spread(part);
  if (threadIdx.x == 0) seen[2 * blockIdx.x] = s.mean, seen[2 * blockIdx.x + 1] = s.squares;
}

// Those of the row that this block has a part of, from what was seen of its parts, at most 256 (Chan's formula).
template <typename T>
__device__ __forceinline__ Moments moments_of_parts(const float* seen, long long parts, float eps) {
  const bool mine = threadIdx.x < parts;
  const long long at = 2 * (blockIdx.x / unsigned(parts) * parts + threadIdx.x);
  const float mean = joined<256, Sum, 0>(mine ? seen[at] : 0.0f) / parts, d = mine ? seen[at] - mean : 0.0f;
  const float squares = joined<256, Sum, 1>(mine ? seen[at + 1] + Part<T>::COLS * d * d : 0.0f);
  return {mean, inverse_root(squares / (parts * Part<T>::COLS) + eps)};
}
