// Quantisation to MXINT8. Without its sign a float sorts as an integer, NaN and Inf last, and the exponent field of the
// largest in a block is its E8M0 code: 255 where one is not finite, 0 where all are subnormal.
#include <assay/vector.cuh>

__device__ __forceinline__ unsigned magnitude(float v) { return __float_as_uint(v) & 0x7fffffffu; }

// The largest magnitude of a vector as bits of its own format: 16-bit ones two at a time.
template <typename T, int N> __device__ __forceinline__ unsigned largest_of(const Vector<T, N>& v) {
  const auto* words = reinterpret_cast<const unsigned*>(&v);
  unsigned most = 0;
#pragma unroll
  for (int i = 0; i < N * (int)sizeof(T) / 4; ++i)
    most = sizeof(T) == 4 ? max(most, words[i] & 0x7fffffffu) : __vmaxu2(most, words[i] & 0x7fff7fffu);
  return sizeof(T) == 4 ? most : max(most & 0xffff, most >> 16);
}

// The exponent field that these bits have as a float.
template <typename T> __device__ __forceinline__ unsigned exponent_field(unsigned bits);
template <> __device__ __forceinline__ unsigned exponent_field<float>(unsigned bits) { return bits >> 23; }
template <> __device__ __forceinline__ unsigned exponent_field<__nv_bfloat16>(unsigned bits) { return bits >> 7; }
template <> __device__ __forceinline__ unsigned exponent_field<__half>(unsigned bits) {
  return magnitude(__half2float(__ushort_as_half(bits))) >> 23;
}

// 2^(133 − code), what turns x into codes, may be beyond float: two factors, neither of which loses a bit that counts.
struct Factors {
  float first, second;
  __device__ __forceinline__ explicit Factors(unsigned code) {
    const int shift = 133 - (int)code, half = shift >> 1;
    first = __int_as_float((half + 127) << 23);
    second = __int_as_float((shift - half + 127) << 23);
  }
};

// The code in the low byte: adding 1.5·2²³ rounds to an integer, ties to even.
__device__ __forceinline__ unsigned encode(float v, const Factors& by) {
  const float scaled = v * by.first * by.second;
  return __float_as_uint(fminf(fmaxf(scaled, -127.0f), 127.0f) + 12582912.0f);
}

__device__ __forceinline__ unsigned pack(unsigned a, unsigned b, unsigned c, unsigned d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// Whole blocks of BLOCK elements, each shared by BLOCK / N neighbouring threads; U vectors of N elements a thread.
template <typename T, int BLOCK, int U>
__global__ void mx_quantize(const T* x, signed char* elements, unsigned char* scales, long long vectors) {
  constexpr int N = 16 / sizeof(T), LANES = BLOCK / N;
  const long long first = blockIdx.x * (long long)blockDim.x * U + threadIdx.x;
  Vector<T, N> v[U];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const long long i = first + u * blockDim.x;
    if (i < vectors) v[u] = load<N>(x + i * N);
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const long long i = first + u * blockDim.x;
    unsigned largest = i < vectors ? largest_of(v[u]) : 0;
#pragma unroll
    for (int lane = LANES / 2; lane; lane /= 2) largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, lane));
    if (i >= vectors) continue;
    const unsigned code = exponent_field<T>(largest);
    const Factors by(code);
    Vector<unsigned, N / 4> packed;
#pragma unroll
    for (int k = 0; k < N; k += 4) {
      const unsigned four = pack(encode(widen(v[u].at[k]), by), encode(widen(v[u].at[k + 1]), by),
                                 encode(widen(v[u].at[k + 2]), by), encode(widen(v[u].at[k + 3]), by));
      packed.at[k / 4] = code == 255 ? 0 : four;
    }
    store<N / 4>(reinterpret_cast<unsigned*>(elements) + i * (N / 4), packed);
    if (threadIdx.x % LANES == 0) scales[i / LANES] = code;
  }
}

// Blocks of any length at any address: a warp each.
template <typename T>
__global__ void mx_quantize_any(const T* x, signed char* elements, unsigned char* scales, long long rows, long long cols,
                                long long block, long long blocks) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (long long i = blockIdx.x * (long long)warps + threadIdx.x / 32; i < rows * blocks; i += (long long)gridDim.x * warps) {
    const long long row = i / blocks, start = (i - row * blocks) * block, length = min(block, cols - start);
    const T* from = x + row * cols + start;
    unsigned largest = 0;
    for (long long k = lane; k < length; k += 32) largest = max(largest, magnitude(widen(from[k])));
    for (int other = 16; other; other /= 2) largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, other));
    const unsigned code = largest >> 23;
    const Factors by(code);
    for (long long k = lane; k < length; k += 32)
      elements[row * cols + start + k] = code == 255 ? 0 : (signed char)encode(widen(from[k]), by);
    if (lane == 0) scales[i] = code;
  }
}
