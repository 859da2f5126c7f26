// Rounding to integers of few bits, times one scale for each row. Without its sign a float sorts as an integer, NaN and Inf last: a
// row's largest magnitude is a maximum of bits.
#include <assay/vector.cuh>

__device__ __forceinline__ unsigned magnitude(float v) { return __float_as_uint(v) & 0x7fffffffu; }

// The largest of all threads of the block, in every thread.
__device__ __forceinline__ unsigned block_largest(unsigned v) {
  __shared__ unsigned of_warp[32];
  v = __reduce_max_sync(0xffffffffu, v);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  return __reduce_max_sync(0xffffffffu, threadIdx.x % 32 < blockDim.x / 32 ? of_warp[threadIdx.x % 32] : 0u);
}

// To nearest even in the upper 16 bits of a float; NaN for a row that is not finite.
__device__ __forceinline__ float scale_of(unsigned largest, float most, float cap) {
  if (largest >= 0x7f800000u) return __uint_as_float(0x7fffffffu);
  const unsigned bits = __float_as_uint(__fdiv_rn(__uint_as_float(largest), most));
  const float near = __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
  return fminf(fmaxf(near, 1.17549435e-38f), cap);
}

// A plain division, as a reciprocal would move quotients off ties; fminf and fmaxf would turn a NaN into a number.
template <typename T> __device__ __forceinline__ T value(T x, float scale, float most) {
  const float code = rintf(fminf(fmaxf(__fdiv_rn(widen(x), scale), -most), most));
  return rounded<T>(scale == scale ? __fadd_rn(__fmul_rn(code, scale), 0.0f) : scale);
}

// The `part` of a row that a block has: N elements at a time.
struct Part {
  long long from, to;
  __device__ __forceinline__ Part(long long part, long long span, long long cols)
      : from(part * span), to(min(cols, (part + 1) * span)) {}
};

template <typename T, int N> __device__ __forceinline__ unsigned part_largest(const T* row, const Part& part) {
  unsigned most = 0;
  for (long long c = part.from + threadIdx.x * N; c < part.to; c += blockDim.x * N) {
    const Vector<T, N> v = load<N>(row + c);
#pragma unroll
    for (int i = 0; i < N; ++i) most = max(most, magnitude(widen(v.at[i])));
  }
  return block_largest(most);
}

template <typename T, int N>
__device__ __forceinline__ void part_rounded(const T* row, T* out, const Part& part, float scale, float most) {
  for (long long c = part.from + threadIdx.x * N; c < part.to; c += blockDim.x * N) {
    const Vector<T, N> v = load<N>(row + c);
    Vector<T, N> w;
#pragma unroll
    for (int i = 0; i < N; ++i) w.at[i] = value(v.at[i], scale, most);
    store<N>(out + c, w);
  }
}

// A block for a row; its second look at x is into a cache.
template <typename T, int N> __global__ void int_round(const T* x, T* out, long long cols, float most, float cap) {
  const long long row = blockIdx.x * cols;
  const Part whole(0, cols, cols);
  const float scale = scale_of(part_largest<T, N>(x + row, whole), most, cap);
  part_rounded<T, N>(x + row, out + row, whole, scale, most);
}

// Of long rows, `parts` blocks for each: first their largest values,
template <typename T, int N>
__global__ void int_round_largest(const T* x, unsigned* largest, long long cols, long long parts, long long span) {
  const long long row = blockIdx.x / parts, part = blockIdx.x % parts;
  const unsigned most = part_largest<T, N>(x + row * cols, Part(part, span, cols));
  if (threadIdx.x == 0) largest[row * 64 + part] = most;
}

// then the values, in the other direction: what was read last is still in the cache.
template <typename T, int N>
__global__ void int_round_parts(const T* x, const unsigned* largest, T* out, long long cols, long long parts, long long span,
                                float most, float cap) {
  const long long block = gridDim.x - 1LL - blockIdx.x, row = block / parts, part = block % parts;
  const unsigned mine = threadIdx.x < parts ? largest[row * 64 + threadIdx.x] : 0u;
  const float scale = scale_of(block_largest(mine), most, cap);
  part_rounded<T, N>(x + row * cols, out + row * cols, Part(part, span, cols), scale, most);
}
