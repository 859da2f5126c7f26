"""The SASS reader, on code built here."""

import subprocess
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import host
from assay.backends import nvrtc
from assay.isa import cubin as cubins
from assay.isa import sass
from assay.target import Target

pytestmark = pytest.mark.skipif(
    host.tool("nvdisasm") is None or not host.has("cuda.bindings"), reason="no nvdisasm or NVRTC here"
)

SOURCE = """\
__device__ __forceinline__ float twice(float v) { return v * 2.5f; }
__device__ __noinline__ float apart(float v) { return sinf(v) * 2.5f; }
template <int N> __global__ void k(float* x, int n) {
    float a = x[threadIdx.x];
#pragma unroll 1
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int j = 0; j < N; j++) a = fmaf(twice(a), a, 1.0f);
    }
    if (n > 5) a = apart(a);
    switch (n) { case 0: a += 1; break; case 1: a *= 3; break; case 2: a /= 2; break; case 3: a -= 7; break;
                 case 4: a = a * a; break; case 5: a = sqrtf(a); break; }
    x[threadIdx.x] = a;
}
"""
FILE = "/somewhere/k.cu"
TARGETS = ("sm_80", "sm_90", "sm_90a")


@pytest.fixture(scope="module", params=TARGETS)
def built(request):
    artifact = nvrtc.build(SOURCE, FILE, "k<7>", Target(request.param))
    return artifact, sass.disassemble(artifact.cubin)[artifact.symbol]


def test_every_instruction_of_the_section_is_read(built):
    """16 bytes each, in order, with the encoding that stands in the cubin."""
    artifact, function = built
    text = next(f.text for f in cubins.functions(artifact.cubin) if f.symbol == artifact.symbol)
    assert [i.address for i in function.instructions] == list(range(0, len(text), 16))
    for i in function.instructions:
        words = (int.from_bytes(text[i.address + at : i.address + at + 8], "little") for at in (0, 8))
        assert i.encoding == tuple(words)


def test_places(built):
    _, function = built
    fma = next(i for i in function.instructions if i.opcode == "FFMA")
    assert fma.source == sass.Place(FILE, 8)
    double = next(i for i in function.instructions if i.opcode == "FMUL" and "2.5" in i.text)
    assert double.source == sass.Place(FILE, 1)
    assert double.inlined == (sass.Place(FILE, 8),)
    assert all(i.ptx for i in function.instructions[:20])


def test_branches_go_to_labels_of_the_function(built):
    _, function = built
    branches = [i for i in function.instructions if i.opcode in ("BRA", "BRX")]
    assert branches
    assert all(function.goes_to(i) for i in branches)
    assert any(len(function.goes_to(i)) > 2 for i in branches), "the switch jumps by a table"


def test_the_loop_is_found(built):
    _, function = built
    (loop,) = [loop for loop in sass.loops(function) if any(i.source == sass.Place(FILE, 8) for i in loop.instructions)]
    counts = Counter(i.opcode for i in loop.instructions)
    assert counts["FFMA"] == 7
    assert counts["FMUL"] == 7
    last = loop.instructions[-1]
    assert last.address == loop.end
    assert loop.start in function.goes_to(last)


def test_an_empty_trap_is_no_loop(built):
    """The endless branch to itself behind EXIT."""
    _, function = built
    assert all(loop.start != loop.end for loop in sass.loops(function))


def _function(lines, labels):
    shown = (labels.get(i, "") + f"        /*{i * 16:04x}*/    {line} ;\n" for i, line in enumerate(lines))
    return sass.read("\t.section\t.text.f\n.text.f:\n" + "".join(shown))["f"]


def test_a_block_out_of_line_that_comes_back_is_no_loop():
    lines = ["BRA `(.L_1)", "FADD R0, R0, R1", "EXIT", "FMUL R0, R0, R0", "BRA `(.L_0)"]
    listing = "\t.section\t.text.f\n.text.f:\n" + "".join(
        {1: ".L_0:\n", 3: ".L_1:\n"}.get(i, "") + f"        /*{i * 16:04x}*/    {line} ;\n"
        for i, line in enumerate(lines)
    )
    function = sass.read(listing)["f"]
    assert function.labels[".L_0"] == 16
    assert sass.loops(function) == []


def test_nested_loops_give_the_inner_one():
    lines = ["MOV R0, RZ", "FADD R0, R0, R1", "@P0 BRA `(.L_1)", "@P1 BRA `(.L_0)", "EXIT"]
    listing = "\t.section\t.text.f\n" + "".join(
        {0: ".L_0:\n", 1: ".L_1:\n"}.get(i, "") + f"        /*{i * 16:04x}*/    {line} ;\n"
        for i, line in enumerate(lines)
    )
    (loop,) = sass.loops(sass.read(listing)["f"])
    assert (loop.start, loop.end) == (16, 32)


@pytest.mark.parametrize("line", ["LEPC R20, `(.L_0)", "WARPSYNC.COLLECTIVE R15, `(.L_0)", "BSSY B0, `(.L_0)"])
def test_what_only_names_a_label_does_not_go_there(line):
    function = _function([line, "FADD R0, R0, R1", "EXIT"], {2: ".L_0:\n"})
    assert function.instructions[0].targets == (".L_0",) and function.labels[".L_0"] == 32
    assert function.goes_to(function.instructions[0]) == ()
    assert function.follows(function.instructions[0]) == (16,)


def test_threads_meet_where_the_last_bssy_of_their_barrier_said():
    lines = ["BSSY B0, `(.L_0)", "BSSY B1, `(.L_1)", "BSYNC B1", "BSYNC B0"]
    lines += ["BSSY B0, `(.L_2)", "BSYNC B0", "BSYNC B2", "EXIT"]
    labels = {3: ".L_1:\n", 4: ".L_0:\n", 6: ".L_2:\n"}
    function = _function(lines, labels)
    assert {i.address // 16: function.goes_to(i) for i in function.instructions if i.opcode == "BSYNC"} == {
        2: (48,),
        3: (64,),
        5: (96,),
        6: (),
    }


def test_several_labels_may_stand_before_one_instruction_and_one_behind_the_last_marks_the_end():
    listing = (
        "\t.section\t.text.f\n.text.f:\n.L_0:\n        /*0000*/    NOP ;\n.L_1:\n        /*0010*/    EXIT ;\n.L_2:\n"
    )
    assert sass.read(listing)["f"].labels == {".text.f": 0, ".L_0": 0, ".L_1": 16}


def test_without_line_information_too():
    """What `nvdisasm -c` alone gives."""
    artifact = nvrtc.build(SOURCE, FILE, "k<7>", Target("sm_80"))
    file = host.cache_folder() / "plain.cubin"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(artifact.cubin)
    listing = subprocess.run([host.tool("nvdisasm"), "-c", file], capture_output=True, text=True, check=True).stdout
    plain = sass.read(listing)[artifact.symbol]
    whole = sass.disassemble(artifact.cubin)[artifact.symbol]
    assert [i.text for i in plain.instructions] == [i.text for i in whole.instructions]
    assert plain.instructions[0].source is None


def test_a_predicate_modifiers_and_operands():
    listing = "\t.section\t.text.f\n        /*0000*/   @!P0 LDG.E.128.CONSTANT R4, desc[UR6][R8.64+0x10] ;\n"
    (load,) = sass.read(listing)["f"].instructions
    assert (load.predicate, load.opcode, load.modifiers) == ("@!P0", "LDG", ("E", "128", "CONSTANT"))
    assert load.operands == ("R4", "desc[UR6][R8.64+0x10]")
    assert load.name == "LDG.E.128.CONSTANT"


plain = st.text(st.sampled_from("RUPc0123456789.x+-|!_"), min_size=1, max_size=8)
brackets = st.sampled_from(["[]", "()", "{}"])


def _bracketed(inner):
    parts = st.tuples(plain, brackets, st.lists(inner, min_size=1, max_size=3))
    return parts.map(lambda p: p[0] + p[1][0] + ", ".join(p[2]) + p[1][1])


nested = st.recursive(plain, _bracketed, max_leaves=6)


@given(st.lists(nested, max_size=6), st.sampled_from([",", ", ", " , "]))
def test_operands_split_where_they_were_joined(operands, comma):
    assert sass.split_operands(comma.join(operands)) == tuple(operands)
