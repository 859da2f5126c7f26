// Operations a second of the vector units: ILP independent chains of one instruction per thread, 512 instructions per turn.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct fp64 {
    using T = double;
    static __device__ __forceinline__ T from(float v) { return v; }
    static __device__ __forceinline__ T fma(T a, T b, T c) { return ::fma(a, b, c); }
    static __device__ __forceinline__ unsigned bits(T a) { return __double2loint(a) ^ __double2hiint(a); }
};

struct fp32 {
    using T = float;
    static __device__ __forceinline__ T from(float v) { return v; }
    static __device__ __forceinline__ T fma(T a, T b, T c) { return fmaf(a, b, c); }
    static __device__ __forceinline__ unsigned bits(T a) { return __float_as_uint(a); }
};

struct fp16 {
    using T = __half2;
    static __device__ __forceinline__ T from(float v) { return __floats2half2_rn(v, 0.5f * v); }  // two equal halves would be packed
    static __device__ __forceinline__ T fma(T a, T b, T c) { return __hfma2(a, b, c); }
    static __device__ __forceinline__ unsigned bits(T a) { return __half_as_ushort(a.x) ^ __half_as_ushort(a.y) << 16; }
};

struct bf16 {
    using T = __nv_bfloat162;
    static __device__ __forceinline__ T from(float v) { return __floats2bfloat162_rn(v, 0.5f * v); }
    static __device__ __forceinline__ T fma(T a, T b, T c) { return __hfma2(a, b, c); }
    static __device__ __forceinline__ unsigned bits(T a) { return __bfloat16_as_ushort(a.x) ^ __bfloat16_as_ushort(a.y) << 16; }
};

struct int32 {
    using T = int;
    static __device__ __forceinline__ T from(float v) { return __float_as_int(v) | 1; }
    static __device__ __forceinline__ T fma(T a, T b, T c) {
        asm volatile("mad.lo.s32 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c));
        return a;
    }
    static __device__ __forceinline__ unsigned bits(T a) { return a; }
};

// b and c come from the host: b just under 1, c small, so that values stay finite and normal.
template <typename V, int ILP>
__global__ void fma_peak(float b, float c, long long rounds, unsigned key, unsigned* sink, long long* clocks) {
    const typename V::T factor = V::from(b), term = V::from(c);
    typename V::T a[ILP];
#pragma unroll
    for (int i = 0; i < ILP; i++) a[i] = V::from(c * (threadIdx.x % 31 + i + 1));
    Watch watch;
#pragma unroll 1
    for (long long r = 0; r < rounds; r++) {
#pragma unroll
        for (int u = 0; u < 512 / ILP; u++)
#pragma unroll
            for (int i = 0; i < ILP; i++) a[i] = V::fma(a[i], factor, term);
    }
    unsigned all = 0;
#pragma unroll
    for (int i = 0; i < ILP; i++) all ^= V::bits(a[i]);
    keep(all, key, sink);
    watch.stop(clocks);
}

// The special-function unit. Each function is iterated on its own result, in a range where that stays finite.
#define MUFU(NAME, INSTRUCTION) \
    struct NAME { static __device__ __forceinline__ void step(float& x) { asm volatile(INSTRUCTION : "+f"(x)); } };

MUFU(ex2, "{.reg .f32 n; neg.f32 n, %0; ex2.approx.ftz.f32 %0, n;}")
MUFU(lg2, "{.reg .f32 n; abs.f32 n, %0; lg2.approx.ftz.f32 %0, n;}")
MUFU(rsq, "rsqrt.approx.ftz.f32 %0, %0;")
MUFU(sqrt_, "sqrt.approx.ftz.f32 %0, %0;")
MUFU(tanh_, "tanh.approx.f32 %0, %0;")
MUFU(sin_, "sin.approx.ftz.f32 %0, %0;")

template <typename F, int ILP>
__global__ void mufu_peak(float c, long long rounds, unsigned key, unsigned* sink, long long* clocks) {
    float a[ILP];
#pragma unroll
    for (int i = 0; i < ILP; i++) a[i] = c * (threadIdx.x % 31 + i + 1);
    Watch watch;
#pragma unroll 1
    for (long long r = 0; r < rounds; r++) {
#pragma unroll
        for (int u = 0; u < 64 / ILP; u++)
#pragma unroll
            for (int i = 0; i < ILP; i++) F::step(a[i]);
    }
    unsigned all = 0;
#pragma unroll
    for (int i = 0; i < ILP; i++) all ^= __float_as_uint(a[i]);
    keep(all, key, sink);
    watch.stop(clocks);
}
