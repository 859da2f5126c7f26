// Cycles of one dependent load: every node holds the address of the next, so nothing can overlap and nothing is computed.

template <int LEVEL>
__device__ __forceinline__ void step(unsigned long long& p) {
    if constexpr (LEVEL == 1) asm volatile("ld.global.u64 %0, [%0];" : "+l"(p));
    else asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(p));
}

// One thread. Several passes over the same ring: the last finds it in the cache; for DRAM, one pass over fresh nodes.
template <int LEVEL>
__global__ void chase(unsigned long long* start, long long steps, long long passes, long long* taken, long long* clocks) {
    Watch watch;
    unsigned long long p = start[0];
    long long spent = 0;
#pragma unroll 1
    for (long long pass = 0; pass < passes; pass++) {
        const long long before = cycles();
#pragma unroll 1
        for (long long i = 0; i < steps; i += 32) {
#pragma unroll
            for (int u = 0; u < 32; u++) step<LEVEL>(p);
        }
        spent = cycles() - before;
    }
    start[0] = p;  // the next launch goes on from here
    taken[0] = spent;
    watch.stop(clocks);
}

// Every lane follows its own pointer in shared memory, `stride` words apart from its neighbour's: lanes that share a bank wait
// for each other. With one warp this is latency, with many it is throughput.
__global__ void chase_shared(long long stride, long long steps, long long* taken, unsigned* sink, unsigned key, long long* clocks) {
    __shared__ unsigned words[32 * 32];
    for (unsigned i = threadIdx.x; i < 32 * 32; i += blockDim.x)
        words[i] = (unsigned)__cvta_generic_to_shared(words + i);
    __syncthreads();
    Watch watch;
    unsigned p = (unsigned)__cvta_generic_to_shared(words + (threadIdx.x % 32) * stride % (32 * 32));
    const long long before = cycles();
#pragma unroll 1
    for (long long i = 0; i < steps; i += 32) {
#pragma unroll
        for (int u = 0; u < 32; u++) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(p));
    }
    __syncthreads();
    if (threadIdx.x == 0) taken[0] = cycles() - before;
    keep(p, key, sink);
    watch.stop(clocks);
}

// Global loads whose lanes are `stride` words apart: how much of each sector is wasted. The host makes n a multiple of a sweep.
template <int UNROLL>
__global__ void strided(const unsigned* __restrict__ x, long long n, long long stride, unsigned key, unsigned* sink,
                        long long* clocks) {
    Watch watch;
    unsigned sum = 0;
    const long long sweep = (long long)gridDim.x * blockDim.x * UNROLL;
#pragma unroll 1
    for (long long at = (long long)blockIdx.x * blockDim.x * UNROLL + threadIdx.x; at < n; at += sweep) {
        unsigned v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) v[u] = x[(at + u * blockDim.x) * stride];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) sum ^= v[u];
    }
    keep(sum, key, sink);
    watch.stop(clocks);
}
