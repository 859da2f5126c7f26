// Atomic additions a second. Which threads share an address is decided by two run-time strides, so that the compiler cannot
// add up within a warp first.

template <int UNROLL>
__global__ void global_add(unsigned* x, long long lane_stride, long long warp_stride, long long rounds, long long* clocks) {
    Watch watch;
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned* mine = x + (thread % 32) * lane_stride + (thread / 32) * warp_stride;
#pragma unroll 1
    for (long long r = 0; r < rounds; r++) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++) asm volatile("red.global.add.u32 [%0], %1;" ::"l"(mine), "r"(threadIdx.x) : "memory");
    }
    watch.stop(clocks);
}

template <int UNROLL>
__global__ void shared_add(unsigned* sink, long long lane_stride, long long warp_stride, long long rounds, long long* clocks) {
    __shared__ unsigned words[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = i;
    __syncthreads();
    Watch watch;
    const unsigned mine = (unsigned)__cvta_generic_to_shared(
        words + (threadIdx.x % 32) * lane_stride + (threadIdx.x / 32) * warp_stride);
#pragma unroll 1
    for (long long r = 0; r < rounds; r++) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++) asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(mine), "r"(threadIdx.x) : "memory");
    }
    __syncthreads();
    sink[blockIdx.x * blockDim.x + threadIdx.x] = words[threadIdx.x % 1024];
    watch.stop(clocks);
}
