"""The PTX reader, on what NVRTC, Triton and Numba write, on PTX by hand that ptxas takes, and on noise."""

import json
import math
import re
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import assay
from assay import host
from assay.backends import nvrtc
from assay.errors import SourceError
from assay.isa import ptx, sass
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

PYTHON = """\
import json, sys
from pathlib import Path

import triton
import triton.language as tl
from numba import cuda, float32, int64
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def dot(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    z = tl.dot(tl.load(a + at), tl.load(b + at))
    for _ in range(n):
        z += tl.sum(tl.exp(z), 1)[:, None]
    tl.store(c + at, z)


def turn(x, n):
    i = cuda.grid(1)
    s = cuda.shared.array(32, float32)
    s[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    if i < n:
        x[i] = s[31 - cuda.threadIdx.x] / x[0]


signature = {"a": "*bf16", "b": "*bf16", "c": "*fp32", "n": "i32", "BLOCK": "constexpr"}
source = ASTSource(dot, signature, {"BLOCK": 64}, {})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
numba, _ = cuda.compile_ptx(turn, (float32[::1], int64), cc=(9, 0), lineinfo=True)
Path(sys.argv[1]).write_text(json.dumps({"triton": compiled.asm["ptx"], "numba": numba}))
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


@cache
def library(op: str, name: str, file: str = "kernel.cu", target: str = "sm_90"):
    path = LIBRARY / op / file
    return nvrtc.build(path.read_text(), f"library/{op}/{file}", name, Target(target))


@pytest.fixture(scope="session")
def written_by_python(tmp_path_factory):
    """Triton's and Numba's PTX, made in a process of its own: other tests set both to other modes."""
    folder = tmp_path_factory.mktemp("ptx")
    (folder / "kernels.py").write_text(PYTHON)
    subprocess.run([sys.executable, "kernels.py", "made.json"], cwd=folder, check=True, capture_output=True)
    return json.loads((folder / "made.json").read_text())


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


@pytest.fixture(params=[*NVRTC, "triton", "numba", "hand"])
def text(request):
    if request.param == "hand":
        return HAND
    if request.param in NVRTC:
        if not host.has("cuda.bindings"):
            pytest.skip("no NVRTC here")
        return by_nvrtc(request.param)
    if not (host.has("triton") and host.has("numba.cuda")):
        pytest.skip("no Triton or no Numba here")
    return request.getfixturevalue("written_by_python")[request.param]


def statements(text):
    """How many instructions a text has, counted with no reader: `;` that end no directive."""
    text = re.sub(r"//.*|/\*[\s\S]*?\*/|\"[^\"]*\"", "", text)
    text = re.sub(r"\.section[^{]*\{[^}]*\}", "", text)
    text = re.sub(
        r"^\s*(?:\.(?:loc|file|version|target|address_size|maxntid|minnctapersm)\b|#).*", "", text, flags=re.M
    )
    text = re.sub(r"\.(?:entry|func)\b[^{;]*", "", re.sub(r"\.(?:visible|weak|extern)\b", "", text))
    text = re.sub(r"(?<!:)\b[\w$]+\s*:(?!:)|\$\w+:", "", text)
    pieces = (piece.strip(" \t\n{}$") for piece in text.split(";"))
    return sum(piece != "" and not piece.startswith(".") for piece in pieces)


def all_instructions(module):
    return [i for f in module.functions for i in f.instructions]


def all_operands(operands):
    for o in operands:
        yield o
        if isinstance(o, ptx.Vector | ptx.Arguments):
            yield from all_operands(o.items)
        elif isinstance(o, ptx.Address):
            yield from all_operands([*([o.base] if o.base else []), *o.more])
        elif isinstance(o, ptx.Pair):
            yield from all_operands([o.first, o.second])


def test_every_instruction_is_read(text):
    assert len(all_instructions(ptx.read(text))) == statements(text) > 25


def test_every_operand_has_its_kind(text):
    """And every register its declaration, every label its place, every parameter its variable."""
    module = ptx.read(text)
    outside = {v.name for v in module.globals} | {f.name for f in module.functions}
    for function in module.functions:
        inside = {(v.name, v.block) for v in (*function.variables, *function.params, *function.returns)}
        for i in function.instructions:
            for o in all_operands(i.operands):
                assert isinstance(o, ptx.Operand)
                if isinstance(o, ptx.Register):
                    assert function.declaration(o), o
                elif isinstance(o, ptx.Label):
                    assert o in function.labels or o in function.targets or o in function.prototypes
                elif isinstance(o, ptx.Symbol):
                    assert (o.name in outside) if o.block == ptx.MODULE else ((o.name, o.block) in inside), o
            if i.predicate:
                assert function.declaration(i.predicate.register).type == "pred"


def test_lines_point_at_the_text(text):
    lines = text.split("\n")
    for i in all_instructions(ptx.read(text)):
        shown = lines[i.line - 1]
        assert re.search(rf"(?<![\w.]){re.escape(i.opcode)}\b", shown), (i, shown)
        if i.predicate:
            assert str(i.predicate) in shown


def test_an_instruction_read_from_its_own_text_is_the_same(text):
    for i in all_instructions(ptx.read(text)):
        again = ptx.read_instruction(i.text, i.names)
        assert again == i
        assert again.text == i.text


def test_operands_stand_in_the_text_as_they_were(text):
    """The printed form and the source differ in blanks and in `+0`, `0F` and the like only."""
    lines = text.split("\n")
    for i in all_instructions(ptx.read(text)):
        if text is HAND or i.opcode == "call":
            continue
        shown = lines[i.line - 1].partition("//")[0]
        whole = re.sub(r"\s", "", shown).replace("+0]", "]")
        assert re.sub(r"\s", "", i.text) in whole


@pytest.mark.skipif(host.tool("ptxas") is None, reason="no ptxas here")
def test_the_hand_written_text_is_ptx(tmp_path):
    (tmp_path / "hand.ptx").write_text(HAND)
    told = subprocess.run(
        [host.tool("ptxas"), "-arch=sm_90a", "hand.ptx", "-o", "o"], cwd=tmp_path, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.fixture(scope="module")
def hand():
    return ptx.read(HAND)


@pytest.fixture(scope="module")
def kernel(hand):
    return hand.function("k")


def named(function, name):
    return [i for i in function.instructions if i.name == name]


def test_a_module(hand):
    assert (hand.version, hand.target, hand.options, hand.address_size) == ((8, 0), "sm_90a", ("debug",), 64)
    assert hand.files == {1: "a;b.cu"}
    assert hand.strings == {"$name0": "out", "$name1": "in"}
    a, b, pointers, dynamic = hand.globals
    assert (a.space, a.type, a.align, a.name, a.initialiser, a.size) == ("global", "u32", 4, "a", "5", 4)
    assert (b.shape, b.initialiser, b.size) == ((2, 3), "{{1, 2, 3}, {4, 5, 6}}", 24)
    assert (pointers.linkage, pointers.space, pointers.initialiser) == ("visible", "const", "{a, generic(b)+4}")
    assert (dynamic.linkage, dynamic.shape, dynamic.size) == ("extern", (0,), 0)
    assert [(f.name, f.kind, f.linkage, f.defined) for f in hand.functions] == [
        ("vprintf", "func", "extern", False), ("stop", "func", "", True), ("double_it", "func", "", True),
        ("triple_it", "func", "", True),
        ("k", "entry", "weak", True),
    ]  # fmt: skip
    assert hand.entries == (hand.function("k"),)


def test_a_kernels_head(kernel):
    x, pack, n = kernel.params
    assert (x.type, x.pointer, x.size) == ("u64", ptx.Pointer("global", 16), 8)
    assert (pack.type, pack.align, pack.shape, pack.size) == ("b8", 4, (24,), 24)
    assert (n.name, n.type, n.pointer) == ("n", "u32", None)
    assert kernel.directives == {"maxntid": (256, 1, 1), "minnctapersm": (2,)}
    assert kernel.pragmas == ("nounroll",)


def test_functions_return(hand):
    assert [(v.space, v.name) for v in hand.function("double_it").returns] == [("reg", "twice")]
    assert hand.function("stop").directives == {"noreturn": ()}
    (add, _) = hand.function("double_it").instructions
    assert add.operands == (ptx.Register("twice"), ptx.Register("given"), ptx.Register("given"))


def test_declarations(kernel):
    kinds = {(r.name, r.block): (r.type, r.count, r.vector) for r in kernel.registers}
    assert kinds["%r", 0] == ("b32", 20, 1)
    assert kinds["other", 0] == ("b64", None, 1)
    assert kinds["%v", 0] == ("f32", None, 4)
    tile, _, spill, *_ = kernel.variables
    assert (tile.space, tile.align, tile.size) == ("shared", 1024, 4096)
    assert (spill.space, spill.vector, spill.shape, spill.size) == ("local", 2, (4,), 32)


def test_a_vector_load(kernel):
    (load,) = named(kernel, "ld.global.nc.L1::no_allocate.v4.u32")
    assert load.opcode == "ld"
    assert load.modifiers == ("global", "nc", "L1::no_allocate", "v4", "u32")
    assert (load.types, load.space, load.vector) == (("u32",), "global", 4)
    registers, address = load.operands
    assert registers == ptx.Vector((ptx.Register("%r3"), ptx.Register("%r4"), ptx.Sink(), ptx.Register("%r5")))
    assert address == ptx.Address(ptx.Register("%rd1"), -16)
    assert load.text == "ld.global.nc.L1::no_allocate.v4.u32 {%r3, %r4, _, %r5}, [%rd1+-16]"


def test_types_and_spaces(kernel):
    (mma,) = named(kernel, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    assert (mma.types, mma.space, mma.vector) == (("f32", "bf16", "bf16", "f32"), "", 1)
    assert [len(o.items) for o in mma.operands] == [4, 4, 2, 4]
    (copy,) = [i for i in kernel.instructions if i.opcode == "cp"]
    assert copy.spaces == ("shared::cluster", "global")
    assert copy.space == "shared::cluster"
    to, tensor, barrier = copy.operands
    coordinates = ptx.Vector((ptx.Register("%r1"), ptx.Register("%r2")))
    assert tensor == ptx.Address(ptx.Register("%rd1"), 0, (coordinates,))
    assert (to, barrier) == (ptx.Address(ptx.Register("%r8")), ptx.Address(ptx.Register("%r9")))
    cvt = ptx.read_instruction("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;")
    assert cvt.types == ("e4m3x2", "f32")


def test_numbers(kernel):
    values = {o.text: o for i in kernel.instructions for o in i.operands if isinstance(o, ptx.Immediate)}
    assert values["0f3F800000"].value == values["0d3FF0000000000000"].value == 1.0
    assert values["0f3F800000"].bits == 0x3F800000
    assert math.isnan(values["0f7FC00000"].value)
    assert values["0f7FC00000"].bits == 0x7FC00000
    assert values["-2.5e-1"].value == -0.25
    assert values["-1"].value == -1
    assert values["-1"].bits == 2**64 - 1
    assert values["0x1F"].value == 31
    assert values["16"].value == 16, "(1 << 3) + 4 * 2"
    assert values["WARP_SZ"].value == 32


@pytest.mark.parametrize(
    ("written", "value"),
    [("017", 15), ("0b101", 5), ("0xFFU", 255), ("7U", 7), ("~5", -6), ("-(3 - 5)", 2), ("7 / -2", -3), ("-7 % 3", -1),
     ("1 | 2 ^ 3 & 6", 1), ("1 << 63", 2**63), ("!0", 1), ("2 * (3 + 4) << 1", 28), (".5", 0.5), ("1.", 1.0)],
)  # fmt: skip
def test_constants(written, value):
    assert ptx.read_instruction(f"mov.u64 %rd1, {written}").operands[1].value == value


def test_predicates_and_pairs(kernel):
    setp = named(kernel, "setp.lt.and.s32")[0]
    assert setp.operands[0] == ptx.Pair(ptx.Register("%p1"), ptx.Register("%p2"))
    assert setp.operands[3] == ptx.Register("%p3", sign="!")
    elect = named(kernel, "elect.sync")[0]
    assert elect.operands[0] == ptx.Pair(ptx.Sink(), ptx.Register("%p3"))
    branch = named(kernel, "bra")[0]
    assert branch.predicate == ptx.Predicate(ptx.Register("%p1"), negated=True)


def test_other_operands(kernel):
    special = named(kernel, "mov.u64")[1]
    assert special.operands[1] == ptx.Special("%clock64")
    assert named(kernel, "mov.u64")[0].operands[1] == ptx.Symbol("a", ptx.MODULE, 4)
    assert named(kernel, "ld.local.u32")[0].operands[1] == ptx.Address(None, 16)
    assert named(kernel, "ld.global.u32")[0].operands[1] == ptx.Address(ptx.Symbol("b"), 8)
    assert named(kernel, "ld.param.u64")[0].operands[1] == ptx.Address(ptx.Symbol("x", 0))
    assert named(kernel, "vadd.s32.s32.s32")[0].operands[2] == ptx.Register("%r2", part="h1")
    assert named(kernel, "vmad.s32.s32.s32")[0].operands[3] == ptx.Register("%r3", sign="-")
    assert named(kernel, "mov.f32")[2].operands[0] == ptx.Register("%v", part="x")


def test_a_name_belongs_to_the_block_that_declares_it(kernel):
    first, second = (i for i in kernel.instructions if i.name == "setp.ne.b32")
    assert first.block != second.block
    assert kernel.blocks[first.block] == kernel.blocks[second.block] == 0
    assert first.operands[:2] == (ptx.Register("p", first.block), ptx.Register("%r2", first.block))
    assert second.operands[:2] == (ptx.Register("p", second.block), ptx.Register("%r2", 0))
    outward = named(kernel, "mov.u32")[3]
    assert outward.operands == (ptx.Register("%r9", 0), ptx.Register("%r2", first.block)), "%r<3> has no %r9"


def test_branches_know_their_label(kernel):
    leave, again, again_too, out = (i.operands[0] for i in named(kernel, "bra"))
    assert leave == out == ptx.Label("$LEAVE", 0)
    assert again != again_too
    assert again.name == again_too.name == "AGAIN"
    assert kernel.instructions[kernel.labels[again]] is named(kernel, "setp.ne.b32")[0]
    assert kernel.instructions[kernel.labels[again_too]] is named(kernel, "setp.ne.b32")[1]
    assert kernel.instructions[kernel.labels[leave]].opcode == "ret"
    index, table = named(kernel, "brx.idx")[0].operands
    assert index == ptx.Register("%r1")
    assert kernel.targets[table] == (ptx.Label("$ONE"), ptx.Label("$TWO"))


def test_calls(kernel):
    plain, through, among = (i for i in kernel.instructions if i.opcode == "call")
    back, callee, handed = plain.operands
    assert (back, handed) == (ptx.Arguments((ptx.Register("%r10"),)), ptx.Arguments((ptx.Register("%r1"),)))
    assert callee == ptx.Symbol("double_it")
    assert through.operands[1] == ptx.Register("%rd4")
    assert through.operands[0] == ptx.Arguments((ptx.Symbol("back", through.block),))
    prototype = kernel.prototypes[through.operands[3]]
    assert [v.type for v in (*prototype.returns, *prototype.params)] == ["b32", "b32"]
    assert kernel.targets[among.operands[3]] == (ptx.Symbol("triple_it"),)


def test_places(hand, kernel):
    assert kernel.instructions[0].location == ptx.Location(1, 10, 3)
    (load,) = named(kernel, "ld.global.nc.L1::no_allocate.v4.u32")
    chain = (load.location, *load.location.inlined)
    assert [(p.file, p.line, p.column) for p in chain] == [(1, 30, 7), (1, 20, 5), (1, 10, 3)]
    assert [hand.strings.get(p.function) for p in chain] == ["in", "out", None]


@has_nvrtc
@pytest.mark.skipif(host.tool("nvdisasm") is None, reason="no nvdisasm here")
def test_places_are_those_of_the_machine_code():
    """nvdisasm tells for each machine instruction its PTX line, its source line and who inlined that. A few that ptxas
    merged keep the place of another."""
    artifact = library("layernorm", "layernorm<__nv_bfloat16, 8, 128, 2>")
    module = ptx.read(artifact.ptx.decode())
    at = {i.line: i.location for i in module.function(artifact.symbol).instructions}
    same = Counter()
    for i in sass.disassemble(artifact.cubin)[artifact.symbol].instructions:
        if i.inlined and (place := at.get(i.ptx)):
            ours = [(module.files[p.file], p.line) for p in (place, *place.inlined)]
            same[ours == [(p.file, p.line) for p in (i.source, *i.inlined)]] += 1
    assert same[True] > 200
    assert same[False] < 0.1 * same[True]


@has_nvrtc
def test_what_nvrtc_says_of_a_kernel():
    module = ptx.read(by_nvrtc("calls"))
    k = module.function("k")
    assert k.directives == {"maxntid": (128, 1, 1), "minnctapersm": (2,)}
    assert [p.size for p in k.params] == [8, 4, 24]
    assert {(v.space, v.size) for v in k.variables} >= {("shared", 256)}
    assert {v.name: v.size for v in module.globals}["factors"] == 32
    calls = [i for i in k.instructions if i.opcode == "call"]
    assert any(ptx.Symbol("vprintf") in i.operands for i in calls)
    assert any(isinstance(i.operands[-1], ptx.Label) for i in calls), "through a pointer"
    multiplied = next(i for i in k.instructions if "0f40200000" in i.text)
    assert [p.line for p in (multiplied.location, *multiplied.location.inlined)] == [7, 8, 18]
    assert module.strings[multiplied.location.function] == "_Z5innerf"


@has_nvrtc
def test_tensor_core_instructions():
    wgmma = [i for i in all_instructions(ptx.read(by_nvrtc("wgmma"))) if i.name.startswith("wgmma.mma_async")]
    assert len(wgmma) == 8
    for i in wgmma:
        assert i.types == ("f32", "bf16", "bf16")
        assert len(i.operands[0].items) == 128
        assert [type(o) for o in i.operands[1:3]] == [ptx.Register] * 2
    mma = [i for i in all_instructions(ptx.read(by_nvrtc("mma"))) if i.opcode == "mma"]
    assert {i.types for i in mma} == {("f32", "bf16", "bf16", "f32"), ("f32", "e4m3", "e4m3", "f32")}
    assert all([len(o.items) for o in i.operands] == [4, 4, 2, 4] for i in mma)


# ── generated instructions ────────────────────────────────────────────────────────────────────────────────────────

words = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(lambda w: w not in ("bra", "brx", "call"))
registers = st.builds(
    ptx.Register,
    st.from_regex(r"%(?:r|rd|f|p)[0-9]{1,3}", fullmatch=True),
    part=st.sampled_from(["", "", "b0", "h1", "x"]),
    sign=st.sampled_from(["", "", "!", "-"]),
)
integers = st.integers(-(2**63), 2**64 - 1)
immediates = st.one_of(
    integers.map(lambda n: ptx.Immediate(str(n), n)),
    st.integers(0, 2**64 - 1).map(lambda n: ptx.Immediate(hex(n), n)),
    st.integers(0, 2**32 - 1).map(lambda n: ptx.Immediate(f"0f{n:08X}", 0.0)),
    st.integers(0, 2**64 - 1).map(lambda n: ptx.Immediate(f"0d{n:016X}", 0.0)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: ptx.Immediate(repr(x), x)),
)
symbols = st.builds(
    ptx.Symbol, st.from_regex(r"[A-Za-z$][\w$]{0,8}", fullmatch=True).filter(str.isascii), st.integers(-1, 5), integers
).filter(lambda s: s.name != "WARP_SZ")
specials = st.sampled_from(["%tid.x", "%clock64", "%lanemask_lt", "%ctaid.z", "%globaltimer"]).map(ptx.Special)
sinks = st.just(ptx.Sink())
simple = st.one_of(registers, immediates, symbols, specials, sinks)
plain_registers = registers.map(lambda r: ptx.Register(r.name))
vectors = st.builds(ptx.Vector, st.lists(simple, max_size=8).map(tuple))
addresses = st.one_of(
    st.builds(ptx.Address, st.one_of(registers, symbols.map(lambda s: ptx.Symbol(s.name, s.block))), integers,
              st.lists(st.one_of(simple, vectors), max_size=2).map(tuple)),
    st.builds(ptx.Address, st.none(), integers),
)  # fmt: skip
pairs = st.builds(ptx.Pair, st.one_of(plain_registers, sinks), st.one_of(plain_registers, sinks))
instructions = st.builds(
    ptx.Instruction,
    words,
    st.lists(st.from_regex(r"[A-Za-z][a-z0-9_]{0,4}(?:::[a-z]{1,4})?", fullmatch=True), max_size=4).map(tuple),
    st.lists(st.one_of(simple, vectors, addresses, pairs), max_size=5).map(tuple),
    st.none() | st.builds(ptx.Predicate, plain_registers, st.booleans()),
)


def agreed(instruction):
    """One meaning for each name: a symbol in one block."""
    blocks = {}
    return all(blocks.setdefault(n.name, n.block) == n.block for n in instruction.names)


@given(instructions.filter(agreed))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_instruction_survives_printing_and_reading(instruction):
    again = ptx.read_instruction(instruction.text + ";", instruction.names)
    assert again == instruction
    assert again.text == instruction.text


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────


def refused(text):
    with pytest.raises(SourceError) as caught:
        ptx.read(text)
    return str(caught.value)


HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def body(code):
    return HEAD + ".entry k()\n{\n.reg .b32 %r<4>; .reg .pred %p<2>;\n" + code + "\n}\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("\x7fELF\x02\x00", "line 1: expected '.version'"),
        (".target sm_90\n", "line 1: expected '.version', with which every PTX begins, found '.target'"),
        (".version 8.0\nmov.u32 %r1, 5;", "line 2: expected '.target' after .version, found 'mov.u32'"),
        (HEAD + "mov.u32 %r1, 5;", "line 4: expected a function, a variable or another directive of a module"),
        (HEAD + ".entry k() {\nret;\n", "the '}' of the function whose body begins on line 4"),
        (HEAD + "/* never closed", "line 4: expected the '*/' of this comment"),
        (HEAD + ".section .debug_info {\n.b8 1", "line 4: expected a '}', found the end of the text"),
        (HEAD + '.file 1 "open\n', "line 4: expected a file's name in quotes"),
        (body("mov.u32 %r1, 5"), "line 7: expected a ';', found the end of the text"),
        (body("mov.u32 %r1, 5") + ".entry l() { ret; }", "line 7: expected ',' or ';', found '}'"),
        (body("mov.u32 %r1, ;"), "line 7: expected an operand, found ';'"),
        (body("mov.u32 %r1 %r2;"), "line 7: expected ',' or ';', found '%r2'"),
        (body("\nmov.u32 %r1, %r9;"), "line 8: %r9 is neither declared nor a special register"),
        (body("ld.global.u32 %r1, [%r2;"), "line 7: expected ']' or ',', found ';'"),
        (body("ld.global.u32 {%r1, %r2, [%r2];"), "line 7: expected an operand, found '['"),
        (body("@5 ret;"), "line 7: expected a predicate register after '@', found '5'"),
        (body("bra NOWHERE;"), "line 7: expected a label NOWHERE"),
        (body("L: ret;\nL: ret;"), "line 8: the label L stands in this block a second time"),
        (body("bra L; { L: ret; }"), "line 7: expected a label L"),
        (body("bra;"), "line 7: expected where to go after bra"),
        (body(".reg .b32;"), "line 7: expected a register's name"),
        (body(".shared .q32 x;"), "line 7: expected a type, a space or an alignment, found '.q32'"),
        (body("mov.u32 %r1, 1 / 0;"), "line 7: a constant is divided by zero"),
        (body("mov.u32 %r1, 99999999999999999999;"), "line 7: expected an operand, found '99999999999999999999'"),
        (body("{" * 100_000), "more than 256 blocks within blocks"),
        (body("mov.u32 %r1, " + "(" * 100_000 + ";"), "line 7: expected a number"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, told):
    assert told in refused(text)


def only_refuses(text, read=ptx.read):
    """Reads it, or says why not, where."""
    try:
        read(text)
    except SourceError as error:
        assert "PTX line" in str(error) or "the PTX is empty" in str(error)


@given(st.integers(0, len(HAND)))
@settings(max_examples=120, deadline=None)
def test_a_text_that_was_cut_off_is_refused(end):
    only_refuses(HAND[:end])


TOKENS = [*ptx.tokens(HAND), "\0", "ß", "٣", "\\", '"', "/*", "*/", "#", "@", "0x", "%", "::", "\n", "1" * 5000]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from(TOKENS)), min_size=1, max_size=6))
@settings(max_examples=250, deadline=None)
@example([(HAND.index("inlined_at"), 5, "{")])
def test_a_text_with_mistakes_is_read_or_refused(changes):
    """Each puts a token over some letters of the text."""
    text = HAND
    for at, dropped, token in changes:
        at %= len(text)
        text = text[:at] + token + text[at + dropped :]
    only_refuses(text)


@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(TOKENS), max_size=60).map(" ".join)))
@settings(max_examples=200, deadline=None)
@example("L: .branchtargets x")
@example("L:")
def test_noise_is_refused(noise):
    only_refuses(noise)
    only_refuses(noise, ptx.read_instruction)
    only_refuses(HEAD + noise)
    only_refuses(body(noise))


def repeated(times):
    """A kernel of 10 × `times` instructions, as compilers write them."""
    code = """
	.loc	1 12 {i}, function_name $name, inlined_at 1 7 3
	ld.global.nc.v4.u32 	{{%r{i}, %r1, %r2, %r3}}, [%rd1+{i}];
	mov.b32 	%f{i}, %r{i};
	fma.rn.f32 	%f{i}, %f1, 0f3F800000, %f{i};
	{{ cvt.rn.bf16.f32 %rs{i}, %f{i};}}
	setp.lt.s64 	%p1, %rd{i}, %rd2;
	@%p1 bra 	$L{i};
$L{i}:
	add.s64 	%rd{i}, %rd1, {i};
	{{.reg .b32 n; neg.s32 n, %r{i}; mov.u32 %r{i}, n;}}
	st.global.u32 	[%rd{i}], %r{i};
"""
    declared = "".join(f".reg .{t} %{n}<{times}>;\n" for t, n in
                       (("b32", "r"), ("b64", "rd"), ("f32", "f"), ("b16", "rs")))  # fmt: skip
    return body(declared + "".join(code.format(i=i) for i in range(4, times)))


def test_time_grows_with_the_text_and_no_faster():
    """10,000 and 50,000 instructions; the second in a few seconds. Time of this process: other work does not count."""

    def seconds(times):
        text = repeated(times)
        begun = time.process_time()
        read = len(all_instructions(ptx.read(text)))
        assert read == 10 * (times - 4)
        return time.process_time() - begun

    few, many = seconds(1_000), seconds(5_000)
    assert many < 8
    assert many < 5 * few * 2 + 0.5


ODD = {
    "operands": body("mov.u32 " + "%r1, " * 200_000),
    "blocks": body("{" + "}{" * 100_000),
    "comments": HEAD + "/*" * 300_000,
    "lines": HEAD + "\n" * 500_000 + "x",
    "inlined": body("".join(f".loc 1 {i + 1} 1, inlined_at 1 {i} 1\n" for i in range(20_000))),
    "signs": body("mov.u32 %r1, " + "- " * 200_000 + "5;"),
    "digits": body("mov.u32 %r1, " + "7" * 500_000 + ";"),
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_texts_take_no_longer(text):
    begun = time.process_time()
    only_refuses(text)
    assert time.process_time() - begun < 4
