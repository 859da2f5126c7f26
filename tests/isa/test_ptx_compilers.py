"""The PTX reader on what NVRTC, Triton and Numba write."""

import json
import re
import subprocess
import sys
from collections import Counter

import pytest

from assay import host
from assay.isa import ptx, sass
from ptx_texts import HAND, NVRTC, all_instructions, by_nvrtc, has_nvrtc, library

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


@pytest.fixture(scope="session")
def written_by_python(tmp_path_factory):
    """Triton's and Numba's PTX, made in a process of its own: other tests set both to other modes."""
    folder = tmp_path_factory.mktemp("ptx")
    (folder / "kernels.py").write_text(PYTHON)
    subprocess.run([sys.executable, "kernels.py", "made.json"], cwd=folder, check=True, capture_output=True)
    return json.loads((folder / "made.json").read_text())


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


def all_operands(operands):
    for o in operands:
        yield o
        if isinstance(o, ptx.Vector | ptx.Arguments):
            yield from all_operands(o.items)
        elif isinstance(o, ptx.Address):
            yield from all_operands([*([o.base] if o.base else []), *o.more])
        elif isinstance(o, ptx.Pair):
            yield from all_operands([o.first, o.second])


@pytest.mark.slow
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
