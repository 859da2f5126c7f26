// Sums and maxima over a warp and over a block of up to 1024 threads. Every thread gets the result.
#pragma once

struct Sum {
  static __device__ __forceinline__ float identity() { return 0.0f; }
  static __device__ __forceinline__ float join(float a, float b) { return a + b; }
};

// NaN wins, as it does in PyTorch; fmaxf would drop it.
struct Max {
  static __device__ __forceinline__ float identity() { return -__int_as_float(0x7f800000); }
  static __device__ __forceinline__ float join(float a, float b) { return a > b || a != a ? a : b; }
};

// Over each LANES neighbouring lanes, a power of two.
template <typename R, int LANES = 32> __device__ __forceinline__ float warp_reduce(float v) {
#pragma unroll
  for (int lane = LANES / 2; lane; lane >>= 1) v = R::join(v, __shfl_xor_sync(0xffffffffu, v, lane));
  return v;
}

// blockDim.x must be a multiple of 32. A kernel may call it once for each R, since no barrier keeps a second call from
// the memory that others still read.
template <typename R> __device__ __forceinline__ float block_reduce_once(float v) {
  __shared__ float partial[32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  v = warp_reduce<R>(v);
  if (lane == 0) partial[warp] = v;
  __syncthreads();
  v = lane < (blockDim.x + 31) / 32 ? partial[lane] : R::identity();
  return warp_reduce<R>(v);
}

// As often as needed.
template <typename R> __device__ __forceinline__ float block_reduce(float v) {
  __syncthreads();  // the last call's readers are done
  return block_reduce_once<R>(v);
}
