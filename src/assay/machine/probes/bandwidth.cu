// Bytes a second: DRAM (read, write, copy, triad), L2, L1, shared memory. 16 bytes per thread and access, UNROLL accesses in flight.
// The host makes n a multiple of one sweep of the grid, so there is no tail.

template <int UNROLL>
__global__ void read(const uint4* __restrict__ x, long long n, unsigned key, unsigned* sink, long long* clocks) {
    Watch watch;
    uint4 sum = make_uint4(0, 0, 0, 0);
    const long long sweep = (long long)gridDim.x * blockDim.x * UNROLL;
#pragma unroll 1
    for (long long at = (long long)blockIdx.x * blockDim.x * UNROLL + threadIdx.x; at < n; at += sweep) {
        uint4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) v[u] = x[at + u * blockDim.x];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) sum = sum ^ v[u];
    }
    keep(fold(sum), key, sink);
    watch.stop(clocks);
}

template <int UNROLL>
__global__ void write(uint4* y, long long n, unsigned key, long long* clocks) {
    Watch watch;
    uint4 v = make_uint4(key, key ^ threadIdx.x, key + blockIdx.x, threadIdx.x);
    const long long sweep = (long long)gridDim.x * blockDim.x * UNROLL;
#pragma unroll 1
    for (long long at = (long long)blockIdx.x * blockDim.x * UNROLL + threadIdx.x; at < n; at += sweep) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++) y[at + u * blockDim.x] = v;
        v.x += key;
    }
    watch.stop(clocks);
}

template <int UNROLL>
__global__ void copy(const uint4* __restrict__ x, uint4* __restrict__ y, long long n, long long* clocks) {
    Watch watch;
    const long long sweep = (long long)gridDim.x * blockDim.x * UNROLL;
#pragma unroll 1
    for (long long at = (long long)blockIdx.x * blockDim.x * UNROLL + threadIdx.x; at < n; at += sweep) {
        uint4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) v[u] = x[at + u * blockDim.x];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) y[at + u * blockDim.x] = v[u];
    }
    watch.stop(clocks);
}

// a = b + s·c, as STREAM has it.
template <int UNROLL>
__global__ void triad(const float4* __restrict__ b, const float4* __restrict__ c, float4* __restrict__ a, long long n,
                      float s, long long* clocks) {
    Watch watch;
    const long long sweep = (long long)gridDim.x * blockDim.x * UNROLL;
#pragma unroll 1
    for (long long at = (long long)blockIdx.x * blockDim.x * UNROLL + threadIdx.x; at < n; at += sweep) {
        float4 v[UNROLL], w[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) v[u] = b[at + u * blockDim.x];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) w[u] = c[at + u * blockDim.x];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            a[at + u * blockDim.x] = make_float4(v[u].x + s * w[u].x, v[u].y + s * w[u].y, v[u].z + s * w[u].z,
                                                 v[u].w + s * w[u].w);
    }
    watch.stop(clocks);
}

// L2: every block walks the same small buffer, round and round, past L1 (ld.global.cg). n is a power of two.
template <int UNROLL>
__global__ void read_l2(const uint4* x, long long n, long long rounds, unsigned key, unsigned* sink, long long* clocks) {
    Watch watch;
    uint4 sum = make_uint4(0, 0, 0, 0);
    const unsigned mask = n - 1, chunk = blockDim.x * UNROLL;
    unsigned at = (blockIdx.x * chunk) & mask;
#pragma unroll 1
    for (long long r = 0; r < rounds; r++) {
        uint4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) v[u] = __ldcg(x + at + threadIdx.x + u * blockDim.x);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) sum = sum ^ v[u];
        at = (at + gridDim.x * chunk) & mask;
    }
    keep(fold(sum), key, sink);
    watch.stop(clocks);
}

// L1: every block has its own small buffer.
template <int UNROLL>
__global__ void read_l1(const uint4* x, long long n, long long rounds, unsigned key, unsigned* sink, long long* clocks) {
    Watch watch;
    uint4 sum = make_uint4(0, 0, 0, 0);
    const unsigned mask = n - 1, chunk = blockDim.x * UNROLL;
    const uint4* mine = x + blockIdx.x * n + threadIdx.x;
    unsigned at = 0;
#pragma unroll 1
    for (long long r = 0; r < rounds; r++) {
        uint4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) v[u] = mine[at + u * blockDim.x];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) sum = sum ^ v[u];
        at = (at + chunk) & mask;
    }
    keep(fold(sum), key, sink);
    watch.stop(clocks);
}

template <int UNROLL>
__global__ void read_shared(const uint4* x, long long rounds, unsigned key, unsigned* sink, long long* clocks) {
    constexpr int COUNT = 2048;  // 32 KiB
    __shared__ uint4 tile[COUNT];
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x) tile[i] = x[i];
    __syncthreads();
    Watch watch;
    uint4 sum = make_uint4(0, 0, 0, 0);
    unsigned at = threadIdx.x;
#pragma unroll 1
    for (long long r = 0; r < rounds; r++) {
        uint4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) v[u] = tile[(at ^ (u * 32)) & (COUNT - 1)];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) sum = sum ^ v[u];
        at += blockDim.x;
    }
    keep(fold(sum), key, sink);
    watch.stop(clocks);
}
