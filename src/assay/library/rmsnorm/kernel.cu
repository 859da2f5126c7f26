// RMSNorm over rows, arithmetic in float. Short rows are read once and kept in registers, by a warp or by a block;
// longer ones are read twice, once for the sum of squares, once to write.
#include <assay/whole_row.cuh>

template <Hint STORE = plain, typename T, int GROUP, int K, int CLUSTER>
__device__ __forceinline__ void scale(const WholeRow<T, GROUP, K, CLUSTER>& row, float rstd, const T* weight, T* y) {
  using Row = WholeRow<T, GROUP, K, CLUSTER>;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    float v[Row::N], w[Row::N];
    row.at(k, v), Row::beside(weight, k, w);
#pragma unroll
    for (int j = 0; j < Row::N; ++j) v[j] = v[j] * rstd * w[j];
    write_as<STORE>(Row::vector(y, k), Row::packed(v));
  }
}

// The usual case: aligned rows that GROUP threads of CLUSTER blocks hold without a rest, with a weight. A multiprocessor
// must have room for RESIDENT threads.
template <typename T, int GROUP, int K, int THREADS, int RESIDENT, Hint LOAD, Hint STORE, int CLUSTER = 1>
__global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
    rmsnorm_whole(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y, long long rows,
                  long long stride, float eps) {
  using Row = WholeRow<T, GROUP, K, CLUSTER>;
  const long long r = Row::index();
  if (r >= rows) return;  // a whole warp, in the last block of several rows
  Row row;
  row.template read<LOAD>(x + r * stride);
  float sum = 0.0f;
  row.each([&](float (&f)[Row::N]) { sum = add_squares(f, sum); });
  const float rstd = inverse_root(over<Row::COLS>(joined<GROUP, Sum, 0, CLUSTER>(sum)) + eps);
  scale<STORE>(row, rstd, weight, y + r * Row::COLS);
}

// Few long rows, aligned and of whole parts, with a weight: the squares of each part, then, all joined, the result.
template <typename T>
__global__ void __launch_bounds__(256, 4)
    rmsnorm_parts_read(const T* __restrict__ x, float* __restrict__ seen, long long stride, long long parts) {
  using Row = Part<T>;
  Row row;
  row.read(x + blockIdx.x / unsigned(parts) * stride + blockIdx.x % unsigned(parts) * Row::COLS);
  float sum = 0.0f;
  row.each([&](float (&f)[Row::N]) { sum = add_squares(f, sum); });
  sum = joined<256, Sum, 0>(sum);
  if (threadIdx.x == 0) seen[blockIdx.x] = sum;
}

template <typename T>
__global__ void __launch_bounds__(256, 4)
    rmsnorm_parts_write(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y,
                        const float* __restrict__ seen, long long stride, long long parts, float eps) {
  using Row = Part<T>;
  const long long r = blockIdx.x / unsigned(parts), first = blockIdx.x % unsigned(parts) * Row::COLS;
  Row row;
  row.read(x + r * stride + first);
  const float sum = joined<256, Sum, 0>(threadIdx.x < parts ? seen[r * parts + threadIdx.x] : 0.0f);
  scale(row, inverse_root(sum / (parts * Row::COLS) + eps), weight + first, y + r * parts * Row::COLS + first);
}

template <typename T, int N> __device__ __forceinline__ float squares(const Vector<T, N>& v) {
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < N; ++j) sum += widen(v.at[j]) * widen(v.at[j]);
  return sum;
}

// y = v · rstd · weight, for the N columns from c on; weight may be null.
template <typename T, int N>
__device__ __forceinline__ void write(Vector<T, N> v, float rstd, const T* weight, T* y, long long c) {
  Vector<T, N> w;
  if (weight) w = load<N>(weight + c);
#pragma unroll
  for (int j = 0; j < N; ++j) v.at[j] = rounded<T>(widen(v.at[j]) * rstd * (weight ? widen(w.at[j]) : 1.0f));
  store<N>(y + c, v);
}

// K vectors of N elements per thread hold the row. WARP: a row per warp, blockDim.y of them; else a row per block.
template <typename T, int N, int K, bool WARP>
__global__ void __launch_bounds__(WARP ? 128 : 1024)
    rmsnorm_kept(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y, long long rows, long long cols,
                 long long stride, float eps) {
  const long long row = WARP ? blockIdx.x * (long long)blockDim.y + threadIdx.y : blockIdx.x;
  if (row >= rows) return;
  x += row * stride, y += row * cols;
  Vector<T, N> v[K];
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int c = (k * blockDim.x + threadIdx.x) * N;
    if (c < cols) v[k] = load<N>(x + c);
  }
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int c = (k * blockDim.x + threadIdx.x) * N;
    if (c < cols) sum += squares(v[k]);
  }
  sum = WARP ? warp_reduce<Sum>(sum) : block_reduce_once<Sum>(sum);
  const float rstd = 1.0f / sqrtf(sum / cols + eps);  // once a row, so the exact ones: rsqrtf is 2 ulp off
#pragma unroll
  for (int k = 0; k < K; ++k) {
    const int c = (k * blockDim.x + threadIdx.x) * N;
    if (c < cols) write(v[k], rstd, weight, y, c);
  }
}

// One block per row.
template <typename T, int N>
__global__ void __launch_bounds__(1024)
    rmsnorm_long(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y, long long cols, long long stride,
                 float eps) {
  x += blockIdx.x * stride, y += blockIdx.x * cols;
  float sum = 0.0f;
#pragma unroll 4
  for (long long c = threadIdx.x * N; c < cols; c += blockDim.x * N) sum += squares(load<N>(x + c));
  const float rstd = 1.0f / sqrtf(block_reduce_once<Sum>(sum) / cols + eps);
  for (long long c = threadIdx.x * N; c < cols; c += blockDim.x * N) write(load<N>(x + c), rstd, weight, y, c);
}
