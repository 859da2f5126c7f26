// The backward pass of GELU of LayerNorm, with n = (x − mean)·rstd, dz = dy·gelu′(n·weight + bias) and g = dz·weight:
//   dx = rstd·(g − Σg/cols − n·Σ(g·n)/cols)   along each row,
//   dweight = Σ dz·n,  dbias = Σ dz           down the columns, in two stages and so in a fixed order.
#include <assay/norm_backward.cuh>
#include <assay/row.cuh>
#include <assay/short_float.cuh>

__device__ __forceinline__ float slope(float x) {
  return 0.5f * (1.0f + erff(x * 0.7071067811865476f)) + x * expf(-0.5f * x * x) * 0.3989422804014327f;
}

// For 16-bit results the short form: half the instructions of this kernel were the slope's.
struct GeluSlope {
  template <typename T> static __device__ __forceinline__ float of(float x, T) { return short_gelu_slope(x); }
  static __device__ __forceinline__ float of(float x, float) { return slope(x); }
};

// Rows that divide evenly, on sm_90 and newer.
template <typename T, int THREADS, int K, int GROUPS, int STAGES>
__global__ void __launch_bounds__(THREADS* GROUPS, 1)
    ln_gelu_backward_whole(const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ weight,
                           const T* __restrict__ bias, const float* __restrict__ mean, const float* __restrict__ rstd,
                           T* __restrict__ dx, float* __restrict__ dweight, float* __restrict__ dbias, long long rows) {
  norm_backward<T, GeluSlope, THREADS, K, GROUPS, STAGES>(dy, x, weight, bias, mean, rstd, dx, dweight, dbias, rows);
}

// Any others. Rows as in the forward pass. With SUMS each block walks over many rows and leaves the column sums of all
// of them in its row of dweight and dbias; where it has several groups, these are joined through `sums` (2·cols floats).
template <typename T, int N, int GROUP, int KEPT, bool SUMS>
__global__ void __launch_bounds__(GROUP > 256 ? GROUP : 256, GROUP > 256 ? 1 : 2)
    ln_gelu_backward(const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ weight,
                     const T* __restrict__ bias, const float* __restrict__ mean, const float* __restrict__ rstd,
                     T* __restrict__ dx, float* __restrict__ dweight, float* __restrict__ dbias, long long rows,
                     long long cols) {
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

    float dz[KEPT ? KEPT : 1][N];  // gelu′ costs more than these registers, or than a second time for long rows
    const auto differentiate = [&](int k, long long c) {
      const Vector<T, N> d = dys.at(k, c), v = xs.at(k, c);
      const Vector<T, N> w = load_or<N>(weight, c, 1.0f), b = load_or<N>(bias, c, 0.0f);
#pragma unroll
      for (int j = 0; j < N; ++j)
        dz[k][j] = widen(d.at[j]) * GeluSlope::of((widen(v.at[j]) - mu) * scale * widen(w.at[j]) + widen(b.at[j]), T());
    };

    float along = 0.0f, total = 0.0f;
    each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) {
      differentiate(k, c);
      const Vector<T, N> v = xs.at(k, c), w = load_or<N>(weight, c, 1.0f);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const float n = (widen(v.at[j]) - mu) * scale, g = dz[k][j] * widen(w.at[j]);
        along += g * n;
        total += g;
        if constexpr (SUMS) {
          dw[k][j] += dz[k][j] * n;
          db[k][j] += dz[k][j];
        }
      }
    });
    along = group_sum<GROUP>(along) / cols;
    total = group_sum<GROUP>(total) / cols;

    each_vector<N, GROUP, KEPT>(mine, [&](int k, long long c) {
      if constexpr (KEPT == 0) differentiate(k, c);
      Vector<T, N> v = xs.at(k, c);
      const Vector<T, N> w = load_or<N>(weight, c, 1.0f);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const float n = (widen(v.at[j]) - mu) * scale, g = dz[k][j] * widen(w.at[j]);
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
__global__ void ln_gelu_backward_columns(const T* __restrict__ dy, const T* __restrict__ x, const T* __restrict__ weight,
                                         const T* __restrict__ bias, const float* __restrict__ mean,
                                         const float* __restrict__ rstd, float* __restrict__ dweight,
                                         float* __restrict__ dbias, long long rows, long long cols) {
  const long long c = (blockIdx.x * (long long)blockDim.x + threadIdx.x) * N;
  if (c >= cols) return;
  const Vector<T, N> w = load_or<N>(weight, c, 1.0f), b = load_or<N>(bias, c, 0.0f);
  float dw[N] = {}, db[N] = {};
  for (long long r = blockIdx.y; r < rows; r += gridDim.y) {
    const Vector<T, N> d = load<N>(dy + r * cols + c), v = load<N>(x + r * cols + c);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float n = (widen(v.at[j]) - mean[r]) * rstd[r];
      const float dz = widen(d.at[j]) * GeluSlope::of(n * widen(w.at[j]) + widen(b.at[j]), T());
      dw[j] += dz * n;
      db[j] += dz;
    }
  }
#pragma unroll
  for (int j = 0; j < N; ++j) {
    dweight[blockIdx.y * cols + c + j] = dw[j];
    dbias[blockIdx.y * cols + c + j] = db[j];
  }
}
