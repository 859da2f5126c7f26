#include <cuda_fp16.h>

// A warp per row, two columns a lane and step.
template <bool WIDE>
__global__ void distance(const __half* x, const __half* y, __half* out, long long rows, long long cols) {
  const long long row = blockIdx.x * 8LL + threadIdx.y;
  if (row >= rows) return;
  x += row * cols, y += row * cols;
  double total = 0.0;
  __half2 narrow = __float2half2_rn(0.0f);
  for (long long c = threadIdx.x * 2; c < cols; c += 64) {
    const float a = __half2float(x[c]) - __half2float(y[c]);
    const float b = c + 1 < cols ? __half2float(x[c + 1]) - __half2float(y[c + 1]) : 0.0f;
    if (WIDE) {
      total += a * a + b * b;
    } else {
      const __half2 d = __floats2half2_rn(a, b);
      narrow = __hfma2(d, d, narrow);
    }
  }
  if (!WIDE) total = __low2float(narrow) + __high2float(narrow);
  for (int step = 16; step; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  if (threadIdx.x == 0) out[row] = __float2half_rn(sqrtf(total));
}
