// LayerNorm of rows, each shared by GROUP threads and kept in registers (KEPT vectors of N per thread) between the
// passes for mean, variance and result; longer rows (KEPT = 0) are read again for each. Arithmetic in float.
#include <assay/row.cuh>

template <typename T, int N, int GROUP, int KEPT>
__global__ void __launch_bounds__(GROUP > 128 ? GROUP : 128)
    layernorm(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y,
              float* __restrict__ mean, float* __restrict__ rstd, long long rows, long long cols, long long stride, float eps) {
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
  const float mu = group_sum<GROUP>(sum) / cols;

  float squares = 0.0f;
  each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) {
    const Vector<T, N> v = row.at(k, c);
#pragma unroll
    for (int j = 0; j < N; ++j) squares += (widen(v.at[j]) - mu) * (widen(v.at[j]) - mu);
  });
  const float scale = 1.0f / sqrtf(group_sum<GROUP>(squares) / cols + eps);

  each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) {
    Vector<T, N> v = row.at(k, c);
    const Vector<T, N> w = load_or<N>(weight, c, 1.0f), b = load_or<N>(bias, c, 0.0f);
#pragma unroll
    for (int j = 0; j < N; ++j)
      v.at[j] = rounded<T>((widen(v.at[j]) - mu) * scale * widen(w.at[j]) + widen(b.at[j]));
    store<N>(y + r * cols + c, v);
  });
  if (r < rows && threadIdx.x % GROUP == 0) {
    if (mean) mean[r] = mu;
    if (rstd) rstd[r] = scale;
  }
}
