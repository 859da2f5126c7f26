// The backward pass of LayerNorm, of rows that divide evenly among THREADS with K vectors each, and of a function after
// it. With n = (x − mean)·rstd, dz = dy·slope(n·weight + bias) and g = dz·weight:
//   dx = rstd·(g − Σg/cols − n·Σ(g·n)/cols)   along each row,
//   dweight = Σ dz·n,  dbias = Σ dz           down the columns.
// dy and x are read once. A block stays for many rows, so that its column sums stay in registers and a row is on its
// way while others are worked on. See docs/kernels/backward.md.
#pragma once
#include <assay/bulk.cuh>
#include <assay/whole_row.cuh>

// Nothing after the LayerNorm; else a struct with `of(z, T())`.
struct Flat {};
template <typename A, typename B> constexpr bool same_type = false;
template <typename A> constexpr bool same_type<A, A> = true;

// Both sums over a warp in six shuffles, not ten: the lower lanes go on with a, the upper ones with b.
__device__ __forceinline__ float2 warp_sums(float a, float b) {
  const bool upper = threadIdx.x & 16;
  float v = upper ? b : a;
  v += __shfl_xor_sync(0xffffffffu, upper ? a : b, 16);
#pragma unroll
  for (int lane = 8; lane; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
  const float w = __shfl_xor_sync(0xffffffffu, v, 16);
  return upper ? make_float2(w, v) : make_float2(v, w);
}

// Over a group of WARPS, with a barrier of its own: no group waits for another. `of_warp` alternates from row to row,
// so that one barrier is enough. Every thread adds all warps' sums: shorter than to shuffle again.
template <int WARPS>
__device__ __forceinline__ float2 group_sums(float a, float b, float2 (&of_warp)[WARPS], int group) {
  float2 v = warp_sums(a, b);
  if constexpr (WARPS == 1) {
    __syncwarp();
  } else {
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32 % WARPS] = v;
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(32 * WARPS) : "memory");
    v = of_warp[0];
#pragma unroll
    for (int i = 1; i < WARPS; ++i) v.x += of_warp[i].x, v.y += of_warp[i].y;
  }
  return v;
}

// A block is GROUPS groups of THREADS, each with rows and a ring of STAGES rows of its own in dynamic shared memory.
// dweight and dbias get a row from each block; join_parts adds these.
template <typename T, typename Slope, int THREADS, int K, int GROUPS, int STAGES>
__device__ __forceinline__ void norm_backward(const T* dy, const T* x, const T* weight, const T* bias,
                                              const float* mean, const float* rstd, T* dx, float* dweight,
                                              float* dbias, long long rows) {
  using Row = WholeRow<T, THREADS, K>;
  constexpr int N = Row::N, COLS = Row::COLS, WARPS = THREADS / 32, BYTES = COLS * sizeof(T);
  constexpr bool SLOPE = !same_type<Slope, Flat>;
  constexpr bool SHORT = sizeof(T) == 2;
  constexpr bool KEPT = SHORT || K <= 2;  // weight and bias in registers, packed; else from the L1 cache for each row
  static_assert(STAGES * sizeof(T) >= 4, "at the end the ring has room for all column sums");
  extern __shared__ __align__(128) uint4 rings[];
  __shared__ __align__(16) float2 of_warp[GROUPS][2][WARPS];
  __shared__ Arrival arrivals[GROUPS][STAGES];
  // The shuffle says that it is the same for the whole warp: addresses from it take no register of each thread.
  const int group = GROUPS == 1 ? 0 : __shfl_sync(0xffffffffu, threadIdx.x / THREADS, 0);
  const int lane = threadIdx.x % THREADS;
  uint4* const ring = rings + group * (STAGES * 2 * K * THREADS);
  Arrival* const arrival = arrivals[group];
  const int count = int(rows), first = blockIdx.x + group * gridDim.x, step = GROUPS * gridDim.x;

  const auto fetch = [&](int r, int stage) {
    if (lane == 0 && r < count) {
      uint4* to = ring + stage * (2 * K * THREADS);
      arrival[stage].expect(2 * BYTES);
      arrival[stage].copy(to, dy + (long long)r * COLS, BYTES);
      arrival[stage].copy(to + K * THREADS, x + (long long)r * COLS, BYTES);
    }
  };
  if (lane == 0)
#pragma unroll
    for (int s = 0; s < STAGES; ++s) arrival[s].init();
  __syncthreads();
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) fetch(first + s * step, s);

  uint4 weights[KEPT ? K : 1], biases[KEPT && SLOPE ? K : 1];
  if constexpr (KEPT)
#pragma unroll
    for (int k = 0; k < K; ++k) {
      weights[k] = *Row::vector(weight, k);
      if constexpr (SLOPE) biases[k] = *Row::vector(bias, k);
    }
  const auto beside = [](const T* p, uint4& kept, int k, float (&f)[N]) {
    if constexpr (KEPT) {
      // Hides that every row sees the same bits: the compiler would keep them unpacked as well.
      if constexpr (SHORT) asm volatile("" : "+r"(kept.x), "+r"(kept.y), "+r"(kept.z), "+r"(kept.w));
      Row::unpack(kept, f);
    } else {
      Row::beside(p, k, f);
    }
  };

  float dw[K][N] = {}, db[K][N] = {};
  float next_mu = first < count ? mean[first] : 0.0f, next_scale = first < count ? rstd[first] : 0.0f;
  int stage = 0, fill = STAGES - 1, odd = 0;
  unsigned phase = 0;
  for (int r = first; r < count; r += step) {
    const float mu = next_mu, scale = next_scale;
    if (r + step < count) next_mu = mean[r + step], next_scale = rstd[r + step];
    const uint4 *dys = ring + stage * (2 * K * THREADS) + lane, *xs = dys + K * THREADS;
    arrival[stage].wait(phase);

    float g[SLOPE ? K : 1][N];  // the slope costs more than these registers
    float along[2] = {}, total[2] = {};
#pragma unroll
    for (int k = 0; k < K; ++k) {
      float d[N], n[N], w[N];
      Row::unpack(dys[k * THREADS], d), Row::unpack(xs[k * THREADS], n), beside(weight, weights[KEPT ? k : 0], k, w);
      // Not x·rstd − mean·rstd, though that is one instruction: its rounding of the mean's size shows in 16 bits.
#pragma unroll
      for (int j = 0; j < N; ++j) n[j] = (n[j] - mu) * scale;
      if constexpr (SLOPE) {
        float b[N];
        beside(bias, biases[KEPT ? k : 0], k, b);
#pragma unroll
        for (int j = 0; j < N; ++j) d[j] *= Slope::of(fmaf(n[j], w[j], b[j]), T());
      }
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const float product = d[j] * w[j];
        if constexpr (SLOPE) g[k][j] = product;
        along[j % 2] = fmaf(product, n[j], along[j % 2]);
        total[j % 2] += product;
        dw[k][j] = fmaf(d[j], n[j], dw[k][j]);
        db[k][j] += d[j];
      }
    }
    const float2 sums = group_sums(along[0] + along[1], total[0] + total[1], of_warp[group][odd], group);
    odd ^= 1;
    fetch(r + (STAGES - 1) * step, fill);  // into the last row's place: all threads are past it

    // dx = slant·(x − mean) + (rstd·g + shift): two instructions an element.
    const float slant = -sums.x * (scale * scale * (1.0f / COLS)), shift = -sums.y * (scale * (1.0f / COLS));
#pragma unroll
    for (int k = 0; k < K; ++k) {
      float v[N];
      Row::unpack(xs[k * THREADS], v);
      if constexpr (SLOPE) {
#pragma unroll
        for (int j = 0; j < N; ++j) v[j] = fmaf(v[j] - mu, slant, fmaf(g[k][j], scale, shift));
      } else {
        float d[N], w[N];
        Row::unpack(dys[k * THREADS], d), beside(weight, weights[KEPT ? k : 0], k, w);
#pragma unroll
        for (int j = 0; j < N; ++j) v[j] = fmaf(v[j] - mu, slant, fmaf(d[j] * w[j], scale, shift));
      }
      __stcs(Row::vector(dx + (long long)r * COLS, k), Row::packed(v));
    }
    if (++stage == STAGES) stage = 0, phase ^= 1;
    if (++fill == STAGES) fill = 0;
  }
  let_next_start();

  // The groups' column sums, through the rings where there are several.
  const long long part = blockIdx.x * (long long)COLS;
  float* const all = reinterpret_cast<float*>(rings);
  float* const w_to = GROUPS == 1 ? dweight + part : all + group * 2 * COLS;
  float* const b_to = GROUPS == 1 ? dbias + part : w_to + COLS;
  if constexpr (GROUPS > 1) __syncthreads();
#pragma unroll
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int j = 0; j < N; j += 4) {
      const int c = (k * THREADS + lane) * N + j;
      *reinterpret_cast<float4*>(w_to + c) = make_float4(dw[k][j], dw[k][j + 1], dw[k][j + 2], dw[k][j + 3]);
      *reinterpret_cast<float4*>(b_to + c) = make_float4(db[k][j], db[k][j + 1], db[k][j + 2], db[k][j + 3]);
    }
  if constexpr (GROUPS > 1) {
    __syncthreads();
    for (int c = 4 * threadIdx.x; c < 2 * COLS; c += 4 * THREADS * GROUPS) {
      float4 sum = *reinterpret_cast<const float4*>(all + c);
#pragma unroll
      for (int i = 1; i < GROUPS; ++i) {
        const float4 v = *reinterpret_cast<const float4*>(all + i * 2 * COLS + c);
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
      }
      *reinterpret_cast<float4*>(c < COLS ? dweight + part + c : dbias + part + (c - COLS)) = sum;
    }
  }
}

// dweight and dbias from the blocks' parts, both in one launch, in a fixed order: blockIdx.y says which; either may be
// absent. A block has 32 columns: eight threads of four columns for each of 32 parts at a time.
template <typename T>
__global__ void __launch_bounds__(256)
    join_parts(const float* __restrict__ dw_parts, const float* __restrict__ db_parts, T* __restrict__ dweight,
               T* __restrict__ dbias, long long count, long long cols) {
  __shared__ __align__(16) float of_warp[8][32];
  T* const out = blockIdx.y ? dbias : dweight;
  if (!out) return;
  const int slot = threadIdx.x / 8, quad = threadIdx.x % 8;
  const float4* p = reinterpret_cast<const float4*>(blockIdx.y ? db_parts : dw_parts) + blockIdx.x * 8 + quad;
  wait_for_last();
  float s[4] = {};
#pragma unroll 8
  for (int i = slot; i < count; i += 32) {
    const float4 v = __ldcg(p + i * (cols / 4));
    s[0] += v.x, s[1] += v.y, s[2] += v.z, s[3] += v.w;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    s[j] += __shfl_xor_sync(0xffffffffu, s[j], 8);
    s[j] += __shfl_xor_sync(0xffffffffu, s[j], 16);
  }
  if (threadIdx.x % 32 < 8)
    *reinterpret_cast<float4*>(&of_warp[threadIdx.x / 32][4 * quad]) = make_float4(s[0], s[1], s[2], s[3]);
  __syncthreads();
  if (threadIdx.x >= 32) return;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += of_warp[i][threadIdx.x];
  out[blockIdx.x * 32LL + threadIdx.x] = rounded<T>(sum);
}
