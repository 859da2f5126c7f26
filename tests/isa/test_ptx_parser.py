"""The PTX reader on a text by hand, construct by construct, and on generated instructions."""

import math
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay import host
from assay.isa import cubin, ptx
from ptx_texts import HAND


@pytest.fixture(scope="module")
def hand():
    return ptx.read(HAND)


@pytest.fixture(scope="module")
def kernel(hand):
    return hand.function("k")


@pytest.mark.skipif(host.tool("ptxas") is None, reason="no ptxas here")
def test_ptxas_reads_the_same_functions_and_sizes(hand, kernel, tmp_path):
    (tmp_path / "hand.ptx").write_text(HAND)
    told = subprocess.run(
        [host.tool("ptxas"), "-arch=sm_90a", "hand.ptx", "-o", "o"], cwd=tmp_path, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assembled = {f.symbol: f for f in cubin.functions((tmp_path / "o").read_bytes())}
    assert set(assembled) == {f.name for f in hand.functions if f.defined}
    sizes = {space: sum(v.size for v in kernel.variables if v.space == space) for space in ("shared", "local")}
    assert sizes == {"shared": assembled["k"].shared, "local": assembled["k"].stack}


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
        ("vprintf", "func", "extern", False),
        ("stop", "func", "", True),
        ("double_it", "func", "", True),
        ("triple_it", "func", "", True),
        ("k", "entry", "weak", True),
    ]
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
    [
        ("017", 15),
        ("0b101", 5),
        ("0xFFU", 255),
        ("7U", 7),
        ("~5", -6),
        ("-(3 - 5)", 2),
        ("7 / -2", -3),
        ("-7 % 3", -1),
        ("1 | 2 ^ 3 & 6", 1),
        ("1 << 63", 2**63),
        ("!0", 1),
        ("2 * (3 + 4) << 1", 28),
        (".5", 0.5),
        ("1.", 1.0),
    ],
)
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
    st.builds(
        ptx.Address,
        st.one_of(registers, symbols.map(lambda s: ptx.Symbol(s.name, s.block))),
        integers,
        st.lists(st.one_of(simple, vectors), max_size=2).map(tuple),
    ),
    st.builds(ptx.Address, st.none(), integers),
)
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
