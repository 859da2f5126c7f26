#include <assay/reduce.cuh>

// A row per block. KEPT: its exponentials wait in shared memory; else they are computed again.
template <bool KEPT> __global__ void softmax(const float* x, float* out, long long cols, long long stride) {
  extern __shared__ float kept[];
  x += blockIdx.x * stride, out += blockIdx.x * cols;
  float top = Max::identity();
  double sum = 0.0;
  for (long long c = threadIdx.x; c < cols; c += blockDim.x) top = Max::join(top, x[c]);
  top = block_reduce<Max>(top);
  for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
    const float e = expf(x[c] - top);
    if (KEPT) kept[c] = e;
    sum += e;
  }
  const float total = block_reduce<Sum>(sum);
  for (long long c = threadIdx.x; c < cols; c += blockDim.x) out[c] = (KEPT ? kept[c] : expf(x[c] - top)) / total;
}
