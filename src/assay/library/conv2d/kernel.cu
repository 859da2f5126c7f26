// Convolution, tiled in shared memory. A block makes 128 output pixels (32 lanes × ROWS) of one image in CHANNELS output
// channels per warp. A chunk of input channels at a time, it stages the input tile with its halo, zero padded, and the
// weights, transposed so that a thread's CHANNELS weights are two 16-byte loads that a whole warp shares.
#include <assay/vector.cuh>

constexpr int ROWS = 4, CHANNELS = 8;  // what one thread makes: a column of 4 pixels, in 8 channels

// The inner operations, twice: left to the compiler, and written out in PTX.
struct Plain {
  template <typename T> static __device__ __forceinline__ float global(const T* p) { return widen(__ldg(p)); }
  static __device__ __forceinline__ float shared(const float* p) { return *p; }
  static __device__ __forceinline__ float4 shared4(const float* p) { return *reinterpret_cast<const float4*>(p); }
  static __device__ __forceinline__ float fma(float a, float b, float c) { return fmaf(a, b, c); }
};

struct Ptx {
  static __device__ __forceinline__ float global(const float* p) {
    float v;
    asm("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
  }
  static __device__ __forceinline__ float global(const __half* p) {
    float v;
    asm("{ .reg .b16 t; ld.global.nc.b16 t, [%1]; cvt.f32.f16 %0, t; }" : "=f"(v) : "l"(p));
    return v;
  }
  static __device__ __forceinline__ float global(const __nv_bfloat16* p) {  // a bf16 is the upper half of a float
    float v;
    asm("{ .reg .b16 t; ld.global.nc.b16 t, [%1]; mov.b32 %0, {0, t}; }" : "=f"(v) : "l"(p));
    return v;
  }
  // Volatile, and said to touch memory: what shared memory holds changes, so these must not move across barriers.
  static __device__ __forceinline__ float shared(const float* p) {
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(address(p)) : "memory");
    return v;
  }
  static __device__ __forceinline__ float4 shared4(const float* p) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(address(p)) : "memory");
    return v;
  }
  static __device__ __forceinline__ float fma(float a, float b, float c) {
    float v;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(v) : "f"(a), "f"(b), "f"(c));
    return v;
  }
  static __device__ __forceinline__ unsigned address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  }
};

// columns: width of the tile in pixels, a power of two up to 32. pitch: width of the staged input. chunk: input channels
// staged at a time, and summed by themselves: long sums lose bits.
template <typename T, int R, int STRIDE, typename Do>
__global__ void __launch_bounds__(256)
    conv2d(const T* x, const T* weight, const T* bias, T* out, long long n, long long c, long long h, long long w, long long k,
           long long oh, long long ow, int S, int padding, int columns, int pitch, int chunk) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int height = 32 / columns * ROWS, staged_rows = (height - 1) * STRIDE + R;
  const int x_in_tile = lane % columns, y_in_tile = lane / columns * ROWS;

  const int group = warps * CHANNELS, weight_pitch = group + 4;  // off the power of two: fewer bank conflicts in staging
  extern __shared__ float4 memory[];
  float* const weights = reinterpret_cast<float*>(memory);     // [chunk][R][S][weight_pitch]
  float* const image = weights + chunk * R * S * weight_pitch;  // [chunk][staged_rows][pitch]

  const long long across = (ow + columns - 1) / columns, down = (oh + height - 1) / height, groups = (k + group - 1) / group;
  for (long long tile = blockIdx.x; tile < n * groups * down * across; tile += gridDim.x) {
    const long long left = tile % across * columns, top = tile / across % down * height;
    const long long first = tile / (across * down) % groups * group, sample = tile / (across * down * groups);

    float total[ROWS][CHANNELS] = {};
    for (int c0 = 0; c0 < c; c0 += chunk) {
      const int channels = min(chunk, (int)c - c0);
      __syncthreads();  // the last chunk has been used
      for (int row = warp; row < channels * staged_rows; row += warps) {
        const long long y = top * STRIDE - padding + row % staged_rows;
        const T* from = x + ((sample * c + c0 + row / staged_rows) * h + y) * w;
        for (int i = lane; i < pitch; i += 32) {
          const long long column = left * STRIDE - padding + i;
          const bool inside = y >= 0 && y < h && column >= 0 && column < w;
          image[row * pitch + i] = inside ? Do::global(from + column) : 0.0f;
        }
      }
      for (int m = warp; m < group; m += warps) {
        const T* from = weight + ((first + m) * c + c0) * R * S;
        for (int i = lane; i < channels * R * S; i += 32)
          weights[i * weight_pitch + m] = first + m < k ? Do::global(from + i) : 0.0f;
      }
      __syncthreads();

      float sum[ROWS][CHANNELS] = {};
      for (int channel = 0; channel < channels; ++channel) {
        for (int j = 0; j < S; ++j) {
          // One column of the input serves all R taps of all ROWS pixels.
          float in[(ROWS - 1) * STRIDE + R];
          const float* column = image + (channel * staged_rows + y_in_tile * STRIDE) * pitch + x_in_tile * STRIDE + j;
#pragma unroll
          for (int i = 0; i < (ROWS - 1) * STRIDE + R; ++i) in[i] = Do::shared(column + i * pitch);
#pragma unroll
          for (int i = 0; i < R; ++i) {
            const float* tap = weights + ((channel * R + i) * S + j) * weight_pitch + warp * CHANNELS;
            const float4 a = Do::shared4(tap), b = Do::shared4(tap + 4);
            const float weight_of[CHANNELS] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
            for (int p = 0; p < ROWS; ++p)
#pragma unroll
              for (int m = 0; m < CHANNELS; ++m) sum[p][m] = Do::fma(in[p * STRIDE + i], weight_of[m], sum[p][m]);
          }
        }
      }
#pragma unroll
      for (int p = 0; p < ROWS; ++p)
#pragma unroll
        for (int m = 0; m < CHANNELS; ++m) total[p][m] += sum[p][m];
    }

#pragma unroll
    for (int m = 0; m < CHANNELS; ++m) {
      const long long channel = first + warp * CHANNELS + m;
      const float offset = bias && channel < k ? widen(bias[channel]) : 0.0f;
#pragma unroll
      for (int p = 0; p < ROWS; ++p) {
        const long long row = top + y_in_tile + p, column = left + x_in_tile;
        if (channel < k && row < oh && column < ow)
          out[((sample * k + channel) * oh + row) * ow + column] = rounded<T>(total[p][m] + offset);
      }
    }
  }
}
