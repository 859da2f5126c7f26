// GELU of LayerNorm of rows, each shared by GROUP threads. Arithmetic in float.
#include <assay/row.cuh>
#include <assay/short_float.cuh>
#include <assay/whole_row.cuh>

// Half as many instructions as normcdff, and as exact where it counts: next to the rounding of x itself.
template <typename T> __device__ __forceinline__ float gelu(float x) {
  return is_short<T> ? shorter_gelu(x) : 0.5f * x * (1.0f + erff(x * 0.7071067811865476f));
}

template <typename T, int GROUP, int K, int CLUSTER>
__device__ __forceinline__ void normalise(const WholeRow<T, GROUP, K, CLUSTER>& row, Moments m, const T* weight,
                                          const T* bias, T* y) {
  using Row = WholeRow<T, GROUP, K, CLUSTER>;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    float v[Row::N], w[Row::N], b[Row::N];
    row.at(k, v), Row::beside(weight, k, w), Row::beside(bias, k, b);
#pragma unroll
    for (int j = 0; j < Row::N; ++j) v[j] = gelu<T>((v[j] - m.mean) * m.rstd * w[j] + b[j]);
    __stcs(Row::vector(y, k), Row::packed(v));
  }
}

// The usual case: aligned rows that GROUP threads of CLUSTER blocks hold without a rest, with weight and bias.
template <typename T, int GROUP, int K, int THREADS, int CLUSTER = 1>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    ln_gelu_whole(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y,
                  long long rows, long long stride, float eps) {
  using Row = WholeRow<T, GROUP, K, CLUSTER>;
  const long long r = Row::index();
  if (r >= rows) return;  // a whole warp, in the last block of several rows
  Row row;
  row.read_past_l1(x + r * stride);
  normalise(row, moments(row, eps), weight, bias, y + r * Row::COLS);
}

// Few long rows, aligned and of whole parts, with weight and bias.
template <typename T>
__global__ void __launch_bounds__(256, 4)
    ln_gelu_parts_read(const T* __restrict__ x, float* __restrict__ seen, long long stride, long long parts) {
  see_part(x, seen, stride, parts);
}

template <typename T>
__global__ void __launch_bounds__(256, 4)
    ln_gelu_parts_write(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                        T* __restrict__ y, const float* __restrict__ seen, long long stride, long long parts,
                        float eps) {
  using Row = Part<T>;
  const long long r = blockIdx.x / unsigned(parts), first = blockIdx.x % unsigned(parts) * Row::COLS;
  Row row;
  row.read(x + r * stride + first);
  const Moments m = moments_of_parts<T>(seen, parts, eps);
  normalise(row, m, weight + first, bias + first, y + r * parts * Row::COLS + first);
}

// Any other: a row is kept in registers (KEPT vectors of N per thread) between the passes for mean, variance and
// result; longer rows (KEPT = 0) are read again for each.
template <typename T, int N, int GROUP, int KEPT>
__global__ void __launch_bounds__(GROUP > 128 ? GROUP : 128)
    ln_gelu(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y,
            long long rows, long long cols, long long stride, float eps) {
  const long long r = blockIdx.x * (long long)(blockDim.x / GROUP) + threadIdx.x / GROUP;
  const long long mine = r < rows ? cols : 0;  // the last block's idle groups still join the sums
  Row<T, N, KEPT> row{x + r * stride};
  each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) { row.fetch(k, c); });

  float sum = 0.0f;
  each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) {
    const Vector<T, N> v = row.at(k, c);
#pragma unroll
    for (int j = 0; j < N; ++j) sum += widen(v.at[j]);
  });
  const float mean = group_sum<GROUP>(sum) / cols;

  float squares = 0.0f;
  each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) {
    const Vector<T, N> v = row.at(k, c);
#pragma unroll
    for (int j = 0; j < N; ++j) squares += (widen(v.at[j]) - mean) * (widen(v.at[j]) - mean);
  });
  const float rstd = 1.0f / sqrtf(group_sum<GROUP>(squares) / cols + eps);

  each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) {
    Vector<T, N> v = row.at(k, c);
    const Vector<T, N> w = load_or<N>(weight, c, 1.0f), b = load_or<N>(bias, c, 0.0f);
#pragma unroll
    for (int j = 0; j < N; ++j)
      v.at[j] = rounded<T>(gelu<T>((widen(v.at[j]) - mean) * rstd * widen(w.at[j]) + widen(b.at[j])));
    store<N>(y + r * cols + c, v);
  });
}
