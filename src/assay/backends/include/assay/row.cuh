// Rows of a matrix, each shared by GROUP neighbouring threads of a block (a power of two), N elements at a time.
#pragma once
#include <assay/reduce.cuh>
#include <assay/vector.cuh>

template <bool B, typename T, typename F> struct conditional { using type = T; };
template <typename T, typename F> struct conditional<false, T, F> { using type = F; };
template <bool B, typename T, typename F> using conditional_t = typename conditional<B, T, F>::type;

// The sum over a group; every thread of it gets it. All threads of the block must call.
template <int GROUP> __device__ __forceinline__ float group_sum(float v) {
#pragma unroll
  for (int lane = (GROUP < 32 ? GROUP : 32) / 2; lane; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
  if constexpr (GROUP > 32) {
    __shared__ float warps[32];
    const int lane = threadIdx.x % 32;
    __syncthreads();  // the last call's readers are done
    if (lane == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = warp_reduce<Sum>(lane < GROUP / 32 ? warps[threadIdx.x / GROUP * (GROUP / 32) + lane] : 0.0f);
  }
  return v;
}

// f(k, c) for each vector that this thread has of a row: its k-th, at columns c to c + N − 1. KEPT is how many fit a
// row that is kept in registers, so that k is a constant; 0 for rows too long for that.
template <int N, int GROUP, int KEPT, typename F> __device__ __forceinline__ void each_vector(long long cols, F f) {
  const int lane = threadIdx.x % GROUP;
  if constexpr (KEPT > 0) {
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
      const int c = (k * GROUP + lane) * N;
      if (c < cols) f(k, c);
    }
  } else {
    for (long long c = lane * N; c < cols; c += GROUP * N) f(0, c);
  }
}

// A row read once and kept in registers. KEPT = 0: read again each time it is asked for.
template <typename T, int N, int KEPT> struct Row {
  const T* memory;
  // Halves are kept in pairs, as 32-bit words: the compiler would give each a register of its own.
  using Word = conditional_t<sizeof(T) * N % 4 == 0, unsigned, T>;
  static constexpr int WORDS = sizeof(T) * N / sizeof(Word);
  Vector<Word, WORDS> kept[KEPT];
  __device__ __forceinline__ void fetch(int k, long long c) {
    kept[k] = load<WORDS>(reinterpret_cast<const Word*>(memory + c));
  }
  __device__ __forceinline__ Vector<T, N> at(int k, long long c) const {
    Vector<Word, WORDS> v = kept[k];
    if constexpr (sizeof(Word) == 4)  // hides that every pass sees the same bits: it would keep them unpacked as well
#pragma unroll
      for (int i = 0; i < WORDS; ++i) asm volatile("" : "+r"(v.at[i]));
    return reinterpret_cast<Vector<T, N>&>(v);
  }
};

template <typename T, int N> struct Row<T, N, 0> {
  const T* memory;
  __device__ __forceinline__ void fetch(int, long long) {}
  __device__ __forceinline__ Vector<T, N> at(int, long long c) const { return load<N>(memory + c); }
};

// A store that stays one instruction: the compiler splits plain ones of 16 bytes where it unrolls a loop around them.
template <int N, typename T> __device__ __forceinline__ void store_whole(T* p, const Vector<T, N>& v) {
  if constexpr (sizeof(v) == 16)
    __stwb(reinterpret_cast<uint4*>(p), reinterpret_cast<const uint4&>(v));
  else
    store<N>(p, v);
}

// N elements from column c on, or N times `value` where there is no such vector (an absent weight or bias).
template <int N, typename T> __device__ __forceinline__ Vector<T, N> load_or(const T* p, long long c, float value) {
  if (p) return load<N>(p + c);
  Vector<T, N> v;
#pragma unroll
  for (int j = 0; j < N; ++j) v.at[j] = rounded<T>(value);
  return v;
}

// The last stage of a sum over rows: out[c] = Σ parts[i][c], in a fixed order. Blocks of 32 columns by 8 threads.
template <typename T> __global__ void column_sums(const float* parts, T* out, long long count, long long cols) {
  __shared__ float sums[8][33];
  const long long c = blockIdx.x * 32LL + threadIdx.x;
  float sum = 0.0f;
  if (c < cols)
    for (long long i = threadIdx.y; i < count; i += 8) sum += parts[i * cols + c];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y || c >= cols) return;
#pragma unroll
  for (int i = 1; i < 8; ++i) sum += sums[i][threadIdx.x];
  out[c] = rounded<T>(sum);
}
