// A thread per output pixel; arithmetic in float.
#include <assay/vector.cuh>

template <typename T>
__global__ void conv2d_dilated(const T* x, const T* weight, T* out, long long n, long long c, long long h, long long w,
                               long long k, long long dilation) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n * k * h * w) return;
  const long long col = i % w, row = i / w % h, filter = i / (w * h) % k, image = i / (w * h * k);
  float total = 0.0f;
  for (long long channel = 0; channel < c; ++channel)
    for (int dy = 0; dy < 3; ++dy)
      for (int dx = 0; dx < 3; ++dx) {
        const long long y = row + (dy - 1) * dilation, z = col + (dx - 1) * dilation;
        if (y < 0 || y >= h || z < 0 || z >= w) continue;
        const float tap = widen(weight[(filter * c + channel) * 9 + dy * 3 + dx]);
        total += widen(x[((image * c + channel) * h + y) * w + z]) * tap;
      }
  out[i] = rounded<T>(total);
}
