// What every probe shares; put before each probe's source when it is built.

__device__ __forceinline__ long long cycles() {
    long long t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
    return t;
}

__device__ __forceinline__ long long nanoseconds() {
    long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}

// The SM's own clock: cycles and nanoseconds of block 0, so that every number knows the clock it was taken at.
struct Watch {
    long long c = cycles(), ns = nanoseconds();

    __device__ __forceinline__ void stop(long long* clocks) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            clocks[0] = cycles() - c;
            clocks[1] = nanoseconds() - ns;
        }
    }
};

__device__ __forceinline__ uint4 operator^(uint4 a, uint4 b) {
    return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

// Keeps a result alive: the compiler cannot know that it never equals the key.
__device__ __forceinline__ void keep(unsigned value, unsigned key, unsigned* sink) {
    if (value == key) sink[0] = value;
}

__device__ __forceinline__ unsigned fold(uint4 v) { return v.x ^ v.y ^ v.z ^ v.w; }
