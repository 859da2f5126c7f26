// MXINT8 to floats. A thread writes 16 bytes, so that every store of a warp is whole lines; it reads 4 or 8 codes for them.
#include <assay/mx.cuh>
#include <assay/vector.cuh>

// Blocks of 2^shift elements that do not straddle rows; U vectors of N elements a thread.
template <typename T, int U>
__global__ void mx_dequantize(const signed char* elements, const unsigned char* scales, T* out, long long vectors,
                              long long shift) {
  constexpr int N = 16 / sizeof(T);
  const long long first = blockIdx.x * (long long)blockDim.x * U + threadIdx.x;
  Vector<unsigned, N / 4> codes[U];
  unsigned scale[U];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const long long i = first + u * blockDim.x;
    if (i < vectors) {
      codes[u] = load<N / 4>(reinterpret_cast<const unsigned*>(elements) + i * (N / 4));
      scale[u] = scales[i * N >> shift];
    }
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const long long i = first + u * blockDim.x;
    const float step = step_value(scale[u]);
    Vector<T, N> v;
#pragma unroll
    for (int k = 0; k < N; ++k) v.at[k] = rounded<T>(element(codes[u].at[k / 4], k % 4) * step);
    if (i < vectors) store<N>(out + i * N, v);
  }
}

// Blocks of any length at any address: a warp each.
template <typename T>
__global__ void mx_dequantize_any(const signed char* elements, const unsigned char* scales, T* out, long long rows,
                                  long long cols, long long block, long long blocks) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (long long i = blockIdx.x * (long long)warps + threadIdx.x / 32; i < rows * blocks; i += (long long)gridDim.x * warps) {
    const long long row = i / blocks, start = (i - row * blocks) * block, length = min(block, cols - start);
    const float step = step_value(scales[i]);
    for (long long k = lane; k < length; k += 32) {
      const long long at = row * cols + start + k;
      out[at] = rounded<T>((float)elements[at] * step);
    }
  }
}
