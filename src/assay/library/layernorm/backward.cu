// The backward pass of LayerNorm, with g = dy·weight and n = (x − mean)·rstd:
//   dx = rstd·(g − Σg/cols − n·Σ(g·n)/cols)   along each row,
//   dweight = Σ dy·n,  dbias = Σ dy           down the columns, in two stages and so in a fixed order.
#include <assay/norm_backward.cuh>
#include <assay/row.cuh>

// Rows that divide evenly, on sm_90 and newer.
template <typename T, int THREADS, int K, int GROUPS, int STAGES>
__global__ void __launch_bounds__(THREADS* GROUPS, 1)
    layernorm_backward_whole(const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ weight,
                             const float* __restrict__ mean, const float* __restrict__ rstd, T* __restrict__ dx,
                             float* __restrict__ dweight, float* __restrict__ dbias, long long rows) {
  norm_backward<T, Flat, THREADS, K, GROUPS, STAGES>(dy, x, weight, nullptr, mean, rstd, dx, dweight, dbias, rows);
}

// Any others. Rows as in the forward pass. With SUMS each block walks over many rows and leaves the column sums of all
// of them in its row of dweight and dbias; where it has several groups, these are joined through `sums` (2·cols floats).
template <typename T, int N, int GROUP, int KEPT, bool SUMS>
__global__ void __launch_bounds__(GROUP > 256 ? GROUP : 256, GROUP > 256 ? 1 : 2)
    layernorm_backward(const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ weight,
                       const float* __restrict__ mean, const float* __restrict__ rstd, T* __restrict__ dx,
                       float* __restrict__ dweight, float* __restrict__ dbias, long long rows, long long cols) {
  static_assert(KEPT > 0 || !SUMS, "column sums of long rows have a kernel of their own");
  extern __shared__ float sums[];
  const int group = threadIdx.x / GROUP, groups = blockDim.x / GROUP;
  float dw[SUMS ? KEPT : 1][N] = {}, db[SUMS ? KEPT : 1][N] = {};

  for (long long first = blockIdx.x * (long long)groups; first < rows; first += gridDim.x * (long long)groups) {
    const long long r = first + group;
    const long long mine = r < rows ? cols : 0;  // the last idle groups still join the sums
    const float mu = r < rows ? mean[r] : 0.0f, scale = r < rows ? rstd[r] : 0.0f;
    Row<T, N, KEPT> dys{dy + r * cols}, xs{x + r * cols};
    each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) { dys.fetch(k, c), xs.fetch(k, c); });

    float along = 0.0f, total = 0.0f;
    each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) {
      const Vector<T, N> d = dys.at(k, c), v = xs.at(k, c), w = load_or<N>(weight, c, 1.0f);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const float n = (widen(v.at[j]) - mu) * scale, g = widen(d.at[j]) * widen(w.at[j]);
        along += g * n;
        total += g;
        if constexpr (SUMS) {
          dw[k][j] += widen(d.at[j]) * n;
          db[k][j] += widen(d.at[j]);
        }
      }
    });
    along = group_sum<GROUP>(along) / cols;
    total = group_sum<GROUP>(total) / cols;

    each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) {
      const Vector<T, N> d = dys.at(k, c), w = load_or<N>(weight, c, 1.0f);
      Vector<T, N> v = xs.at(k, c);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const float n = (widen(v.at[j]) - mu) * scale, g = widen(d.at[j]) * widen(w.at[j]);
        v.at[j] = rounded<T>(scale * (g - total - n * along));
      }
      store_whole<N>(dx + r * cols + c, v);
    });
  }

  if constexpr (SUMS) {
    for (int turn = 0; turn < groups; ++turn) {  // group after group, the last one hands the result out
      if (group == turn)
        each_vector<N, GROUP, KEPT>(cols, [&](int k, long long c) {
          const bool last = turn == groups - 1;
          float* w = last ? dweight + blockIdx.x * cols + c : sums + c;
          float* b = last ? dbias + blockIdx.x * cols + c : sums + cols + c;
#pragma unroll
          for (int j = 0; j < N; ++j) {
            w[j] = turn ? sums[c + j] + dw[k][j] : dw[k][j];
            b[j] = turn ? sums[cols + c + j] + db[k][j] : db[k][j];
          }
        });
      __syncthreads();
    }
  }
}

// The first stage of dweight and dbias where rows are long: N columns per thread, every gridDim.y-th row.
template <typename T, int N>
__global__ void layernorm_backward_columns(const T* __restrict__ dy, const T* __restrict__ x, const float* __restrict__ mean,
                                           const float* __restrict__ rstd, float* __restrict__ dweight,
                                           float* __restrict__ dbias, long long rows, long long cols) {
  const long long c = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * N;
  if (c >= cols) return;
  float dw[N] = {}, db[N] = {};
  for (long long r = blockIdx.y; r < rows; r += gridDim.y) {
    const Vector<T, N> d = load<N>(dy + r * cols + c), v = load<N>(x + r * cols + c);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      dw[j] += widen(d.at[j]) * ((widen(v.at[j]) - mean[r]) * rstd[r]);
      db[j] += widen(d.at[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < N; ++j) {
    dweight[blockIdx.y * cols + c + j] = dw[j];
    dbias[blockIdx.y * cols + c + j] = db[j];
  }
}
