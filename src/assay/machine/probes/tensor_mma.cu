// Operations a second of mma.sync: A and B random, in registers; ILP independent accumulators per warp, 32 instructions per turn.

#define MMA(NAME, INSTRUCTION)                                                                                         \
    struct NAME {                                                                                                      \
        static __device__ __forceinline__ void step(unsigned (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { \
            asm volatile(INSTRUCTION " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                          \
                         : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                              \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                          \
        }                                                                                                              \
    };

MMA(fp16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
MMA(bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
MMA(tf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")
MMA(fp8, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
MMA(int8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")

// x holds random numbers of the dtype, four words of A and two of B for each thread of a block.
template <typename M, int ILP>
__global__ void mma_peak(const unsigned* x, long long rounds, unsigned key, unsigned* sink, long long* clocks) {
    unsigned a[4], b[2], d[ILP][4];
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = x[threadIdx.x * 6 + i];
#pragma unroll
    for (int i = 0; i < 2; i++) b[i] = x[threadIdx.x * 6 + 4 + i];
#pragma unroll
    for (int i = 0; i < ILP * 4; i++) d[i / 4][i % 4] = 0;
    Watch watch;
#pragma unroll 1
    for (long long r = 0; r < rounds; r++) {
#pragma unroll
        for (int u = 0; u < 32 / ILP; u++)
#pragma unroll
            for (int i = 0; i < ILP; i++) M::step(d[i], a, b);
    }
    unsigned all = 0;
#pragma unroll
    for (int i = 0; i < ILP * 4; i++) all ^= d[i / 4][i % 4];
    keep(all, key, sink);
    watch.stop(clocks);
}
