"""PTX to read: what NVRTC writes, and a text by hand that ptxas accepts."""

from functools import cache
from pathlib import Path

import pytest

import assay
from assay import host
from assay.backends import nvrtc
from assay.machine import build as machine
from assay.target import Target

LIBRARY = Path(assay.__file__).parent / "library"

CALLS = """\
typedef float (*function)(float, int);
__device__ __noinline__ float times(float a, int b) { return a * b; }
__device__ __noinline__ float plus(float a, int b) { return a + b; }
__device__ function table[2] = {times, plus};
__constant__ float factors[8] = {1, 2, 3};
struct Pack { int a; float b[5]; };
__device__ __forceinline__ float inner(float v) { return v * 2.5f; }
__device__ __forceinline__ float outer(float v) { return inner(v) * v; }
extern "C" __global__ void __launch_bounds__(128, 2) k(float* x, int n, Pack s) {
    extern __shared__ float dynamic[];
    __shared__ double fixed[32];
    float local[64];
    for (int i = 0; i < n; i++) local[i & 63] = x[i];
    printf("%d\\n", n);
    dynamic[threadIdx.x] = table[n & 1](x[0], s.a) + factors[n] + local[n & 63];
    fixed[threadIdx.x] = 1.0 / x[1];
    __syncthreads();
    x[2] = outer(dynamic[3]) + fixed[n] + clock64();
}
"""

HAND = """\
// a comment with ; and { in it
.version 8.0
.target sm_90a, debug
.address_size 64
/* several
   lines; */
.file 1 "a;b.cu"
.global .align 4 .u32 a = 5, b[2][3] = {{1, 2, 3}, {4, 5, 6}};
.visible .const .align 8 .u64 pointers[2] = {a, generic(b)+4};
.extern .shared .align 16 .b8 dynamic[];
.extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 rest);
.func stop () .noreturn { trap; exit; }
.func (.reg .u32 twice) double_it (.reg .u32 given) { add.u32 twice, given, given; ret; }
.func (.param .b32 out) triple_it (.param .b32 in)
{
  .reg .b32 %r<3>; ld.param.b32 %r1, [in]; mul.lo.u32 %r2, %r1, 3; st.param.b32 [out], %r2; exit;
}
.weak .entry k(.param .u64 .ptr .global .align 16 x, .param .align 4 .b8 pack[24], .param .u32 n)
.maxntid 256, 1, 1
.minnctapersm 2
.pragma "nounroll";
{
  .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<6>, other;
  .reg .f32 %f<8>; .reg .f64 %d<2>; .reg .v4 .f32 %v;
  .shared .align 1024 .b8 tile[4096];
  .shared .align 8 .b64 bar;
  .local .v2 .f32 spill[4];
# 5 "made.cu"
  .loc 1 10 3
  ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mov .u32 %r2, (1 << 3) + 4 * 2;
  .loc 1 20 5, function_name $name0, inlined_at 1 10 3
  .loc 1 30 7, function_name $name1, inlined_at 1 20 5
  ld.global.nc.L1::no_allocate.v4.u32
      {%r3, %r4,   // the line goes on
       _, %r5}, [%rd1+-16];
  setp.lt.and.s32 %p1|%p2, %r1, -1, !%p3;
  @!%p1 bra $LEAVE;
  mov.f32 %f1, 0f3F800000; mov.f64 %d1, 0d3FF0000000000000; mov.f32 %f2, 0F7fc00000; mov.f32 %v.x, 1.5;
  fma.rn.f32 %f3, %f1, -2.5e-1, %f2;
  { .reg .b32 %r<3>; .reg .pred p; mov.u32 %r2, 7; AGAIN: setp.ne.b32 p, %r2, 0; @p bra AGAIN; mov.u32 %r9, %r2; }
  { .reg .pred p; AGAIN: setp.ne.b32 p, %r2, 0; @p bra AGAIN; bra $LEAVE; }
  vadd.s32.s32.s32 %r6, %r1.b0, %r2.h1;
  vmad.s32.s32.s32 %r6, %r1.b0, %r2.b1, -%r3;
  mov.u64 %rd2, a+4; mov.u64 %rd3, %clock64; ld.local.u32 %r7, [16]; ld.global.u32 %r7, [b+4*2];
  mov.u32 %r8, tile; mov.u32 %r9, bar;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [%rd1, {%r1, %r2}], [%r9];
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
    {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
  elect.sync _|%p3, WARP_SZ;
  call.uni (%r10), double_it, (%r1);
  {
    .param .b32 to; .param .b32 back;
    st.param.b32 [to+0], %r1;
    mov.u64 %rd4, triple_it;
    proto : .callprototype (.param .b32 _) _ (.param .b32 _);
    call (back), %rd4, (to), proto;
    some: .calltargets triple_it;
    call (back), %rd4, (to), some;
    ld.param.b32 %r11, [back];
  }
  jumps: .branchtargets $ONE, $TWO;
  brx.idx %r1, jumps;
$ONE: add.s32 %r12, %r1, 0x1F;
$TWO: $LEAVE:
  ret;
}
.section .debug_str {
$name0: .b8 111,117,116,0
$name1:
.b8 105,110
.b8 0
}
.section .debug_loc { .b64 $ONE+4
.b8 1 }
"""


HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def body(code):
    return HEAD + ".entry k()\n{\n.reg .b32 %r<4>; .reg .pred %p<2>;\n" + code + "\n}\n"


@cache
def library(op: str, name: str, file: str = "kernel.cu", target: str = "sm_90"):
    path = LIBRARY / op / file
    return nvrtc.build(path.read_text(), f"library/{op}/{file}", name, Target(target))


def probe(file: str, *names: str):
    return machine.build(file, names, Target("sm_90a")).artifacts[names[0]]


@cache
def by_nvrtc(name: str) -> str:
    match name:
        case "gelu":
            found = library("gelu", "gelu<__nv_bfloat16, 8, Erf>")
        case "layernorm":
            found = library("layernorm", "layernorm<__nv_bfloat16, 8, 128, 2>")
        case "backward":
            found = library("layernorm", "layernorm_backward<__half, 8, 128, 2, true>", "backward.cu")
        case "conv2d":
            found = library("conv2d", "conv2d<__nv_bfloat16, 3, 1, Ptx>")
        case "mma":
            found = probe("tensor_mma.cu", "mma_peak<bf16, 2>", "mma_peak<fp8, 1>")
        case "wgmma":
            found = probe("tensor_wgmma.cu", "wgmma_peak<bf16, 1>")
        case _:
            found = nvrtc.build(CALLS, "calls.cu", "k", Target("sm_90"), named=False)
    return found.ptx.decode()


has_nvrtc = pytest.mark.skipif(not host.has("cuda.bindings"), reason="no NVRTC here")
NVRTC = ("gelu", "layernorm", "backward", "conv2d", "mma", "wgmma", "calls")


def all_instructions(module):
    return [i for f in module.functions for i in f.instructions]
