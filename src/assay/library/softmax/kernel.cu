// Softmax over rows, arithmetic in float. Short rows are read once and kept in registers, by a warp or by a block;
// longer ones are read twice, once for maximum and sum together, once to write; few long ones are cut among blocks.
#include <assay/short_float.cuh>
#include <assay/whole_row.cuh>

#define NOTHING __int_as_float(0xff800000)  // −∞

// fmaxf drops NaN; the sum of exponentials brings it back, so a NaN makes its whole row NaN.

template <typename T> __device__ __forceinline__ float exponential(float x) {
  return is_short<T> ? short_exp(x) : expf(x);
}

// 1/v for 1 ≤ v: the hardware's, and a step of Newton's. A division has a slow path, a call that costs registers.
__device__ __forceinline__ float inverse(float v) {
  const float r = reciprocal(v);
  return fmaf(r, fmaf(-v, r, 1.0f), r);
}

struct Top {
  static __device__ __forceinline__ float identity() { return NOTHING; }
  static __device__ __forceinline__ float join(float a, float b) { return fmaxf(a, b); }
};

// The usual case: aligned rows that GROUP threads of CLUSTER blocks hold without a rest. The exponentials are kept as
// floats between the sum and the result where they take at most 32 registers; else they are computed again.
template <typename T, int GROUP, int K, int THREADS, int CLUSTER = 1>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    softmax_whole(const T* __restrict__ x, T* __restrict__ y, long long rows, long long stride) {
  using Row = WholeRow<T, GROUP, K, CLUSTER>;
  const long long r = Row::index();
  if (r >= rows) return;  // a whole warp, in the last block of several rows
  Row row;
  row.read(x + r * stride);
  float top = NOTHING, total = 0.0f;
  row.each([&](float (&f)[Row::N]) {
#pragma unroll
    for (int j = 0; j < Row::N; ++j) top = fmaxf(top, f[j]);
  });
  top = joined<GROUP, Top, 0, CLUSTER>(top);
  constexpr bool KEEP = K * Row::N <= 32;
  float e[KEEP ? K : 1][Row::N];
  const auto exponentials = [&](int k, float (&f)[Row::N]) {
    row.at(k, f);
#pragma unroll
    for (int j = 0; j < Row::N; ++j) f[j] = exponential<T>(f[j] - top);
  };
#pragma unroll
  for (int k = 0; k < K; ++k) {
    exponentials(k, e[KEEP ? k : 0]);
    total += pairwise(e[KEEP ? k : 0]);
  }
  const float scale = inverse(joined<GROUP, Sum, 1, CLUSTER>(total));
#pragma unroll
  for (int k = 0; k < K; ++k) {
    float (&v)[Row::N] = e[KEEP ? k : 0];
    if constexpr (!KEEP) exponentials(k, v);
#pragma unroll
    for (int j = 0; j < Row::N; ++j) v[j] *= scale;
    *Row::vector(y + r * Row::COLS, k) = Row::packed(v);
  }
}

// K vectors of N elements per thread hold the row. WARP: a row per warp, blockDim.y of them; else a row per block.
template <typename T, int N, int K, bool WARP>
__global__ void __launch_bounds__(WARP ? 128 : 1024)
    softmax_kept(const T* __restrict__ x, T* __restrict__ y, long long rows, long long cols, long long stride) {
  const long long row = WARP ? blockIdx.x * (long long)blockDim.y + threadIdx.y : blockIdx.x;
  if (row >= rows) return;
  x += row * stride, y += row * cols;
  float v[K][N], top = NOTHING, total = 0.0f;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int c = (k * blockDim.x + threadIdx.x) * N;
    Vector<T, N> in;
    if (c < cols) in = load<N>(x + c);
#pragma unroll
    for (int j = 0; j < N; ++j) top = fmaxf(top, v[k][j] = c < cols ? widen(in.at[j]) : NOTHING);
  }
  top = WARP ? warp_reduce<Max>(top) : block_reduce_once<Max>(top);
#pragma unroll
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int j = 0; j < N; ++j) total += v[k][j] = expf(v[k][j] - top);
  const float scale = 1.0f / (WARP ? warp_reduce<Sum>(total) : block_reduce_once<Sum>(total));
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int c = (k * blockDim.x + threadIdx.x) * N;
    Vector<T, N> out;
#pragma unroll
    for (int j = 0; j < N; ++j) out.at[j] = rounded<T>(v[k][j] * scale);
    if (c < cols) store<N>(y + c, out);
  }
}

// Maximum, and sum of e^(x − maximum), of what was seen so far.
struct Online {
  float top = NOTHING, total = 0.0f;

  // Against 0 while only −∞ was seen: −∞ − −∞ would be NaN.
  __device__ __forceinline__ float base() const { return top == NOTHING ? 0.0f : top; }

  template <typename T, int N> __device__ __forceinline__ void see(const Vector<T, N>& v) {
    const float before = top;
#pragma unroll
    for (int j = 0; j < N; ++j) top = fmaxf(top, widen(v.at[j]));
    total *= expf(before - base());
#pragma unroll
    for (int j = 0; j < N; ++j) total += expf(widen(v.at[j]) - base());
  }

  // What all threads of the block saw.
  __device__ __forceinline__ Online of_block() const {
    Online all;
    all.top = block_reduce_once<Max>(top);
    all.total = block_reduce_once<Sum>(total * expf(top - all.base()));
    return all;
  }
};

template <int N, typename T> __device__ __forceinline__ Online read(const T* x, long long from, long long to) {
  Online seen;
#pragma unroll 4
  for (long long c = from + threadIdx.x * N; c < to; c += blockDim.x * N) seen.see(load<N>(x + c));
  return seen.of_block();
}

template <int N, typename T>
__device__ __forceinline__ void write(const T* x, T* y, long long from, long long to, Online row) {
  const float scale = 1.0f / row.total;
  for (long long c = from + threadIdx.x * N; c < to; c += blockDim.x * N) {
    Vector<T, N> v = load<N>(x + c);
#pragma unroll
    for (int j = 0; j < N; ++j) v.at[j] = rounded<T>(expf(widen(v.at[j]) - row.top) * scale);
    store<N>(y + c, v);
  }
}

// One block per row.
template <typename T, int N>
__global__ void __launch_bounds__(1024)
    softmax_online(const T* __restrict__ x, T* __restrict__ y, long long cols, long long stride) {
  x += blockIdx.x * stride, y += blockIdx.x * cols;
  write<N>(x, y, 0, cols, read<N>(x, 0, cols));
}

// `parts` blocks per row, each with `part` elements of it: first what each saw, then, all joined, the result.
template <typename T, int N>
__global__ void __launch_bounds__(1024) softmax_parts_read(const T* __restrict__ x, float* seen, long long cols,
                                                           long long stride, long long parts, long long part) {
  const long long row = blockIdx.x / parts, from = blockIdx.x % parts * part;
  const Online mine = read<N>(x + row * stride, from, min(from + part, cols));
  if (threadIdx.x == 0) seen[2 * blockIdx.x] = mine.top, seen[2 * blockIdx.x + 1] = mine.total;
}

template <typename T, int N>
__global__ void __launch_bounds__(1024)
    softmax_parts_write(const T* __restrict__ x, T* __restrict__ y, const float* seen, long long cols, long long stride,
                        long long parts, long long part) {
  const long long row = blockIdx.x / parts, from = blockIdx.x % parts * part;
  Online all;
  for (long long p = threadIdx.x; p < parts; p += blockDim.x) {
    const float before = all.top, top = seen[2 * (row * parts + p)], total = seen[2 * (row * parts + p) + 1];
    all.top = fmaxf(before, top);
    all.total = all.total * expf(before - all.base()) + total * expf(top - all.base());
  }
  write<N>(x + row * stride, y + row * cols, from, min(from + part, cols), all.of_block());
}
