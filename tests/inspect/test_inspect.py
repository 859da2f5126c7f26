"""What a kernel was compiled to, against the bytes of the cubin, the disassembler's own words and lines we planted."""

import json
import re
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay import host
from assay.errors import UsageError
from assay.inspect import Options, inspections
from assay.inspect.occupancy import occupancy
from assay.inspect.remarks import remarks_on
from assay.inspect.since import changes
from assay.isa.chips import CHIPS
from assay.isa.cubin import functions
from assay.isa.pipes import PIPES
from assay.record import document, read
from command import assay as command

KERNELS = (
    "gelu/cuda",
    "layernorm/cuda",
    "softmax/cuda",
    "transpose/cuda",
    "sum/cuda",
    "conv2d/cuda:inline_ptx",
    "gelu/triton",
    "layernorm/triton",
    "softmax/triton",
    "transpose/triton:tiled",
    "gelu/numba",
    "layernorm/numba",
    "transpose/numba:padded",
    "gelu/cupy",
    "sum/cupy",
)
SAMPLE = ("conv2d/cuda:inline_ptx", "layernorm/triton")
TARGETS = ("sm_80", "sm_90a", "sm_100")
pytestmark = pytest.mark.skipif(host.tool("nvdisasm") is None, reason="needs nvdisasm")


def by_tool(cubin, symbol, tmp_path):
    """nvdisasm's own lines: address → text, read as plainly as can be."""
    file = tmp_path / "x.cubin"
    file.write_bytes(cubin)
    listing = subprocess.run(
        [host.tool("nvdisasm"), "-c", "-fun", _index(cubin, symbol), file], capture_output=True, text=True, check=True
    ).stdout
    lines = {}
    for line in listing.splitlines():
        if m := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", line):
            plain = re.sub(r"\(\*.*?\*\)", "", m[2])  # its remarks: (*"SpillRefill"*)
            lines[int(m[1], 16)] = re.sub(r"\s+", " ", plain.strip().lstrip("{").strip())
    return lines


def _index(cubin, symbol):
    import struct

    from assay.isa.cubin import sections

    named = {s.name: s.data for s in sections(cubin)}
    for i in range(len(named[".symtab"]) // 24):
        (at,) = struct.unpack_from("<I", named[".symtab"], i * 24)
        if named[".strtab"][at : named[".strtab"].index(b"\0", at)].decode() == symbol:
            return str(i)
    raise AssertionError(symbol)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [k if k in SAMPLE else pytest.param(k, marks=pytest.mark.whole) for k in KERNELS])
def test_every_instruction_is_in_the_table_once_as_cubin_and_disassembler_have_it(kernel, tmp_path):
    found = list(inspections([kernel], Options(TARGETS)))
    assert len({one.record.evidence["target"] for one in found}) == len(TARGETS)
    for one in found:
        assert one.record.status == "compiled", one.record.reason  # and so its gates hold, on every target
        symbol, rows = one.record.evidence["symbol"], one.record.instructions
        (text,) = [f.text for f in functions(one.cubin) if f.symbol == symbol]
        assert b"".join(bytes.fromhex(r["encoding"]) for r in rows) == text
        assert [r["address"] for r in rows] == list(range(0, len(text), 16))
        assert {r["address"]: r["text"] for r in rows} == by_tool(one.cubin, symbol, tmp_path)
        assert {r["pipe"] for r in rows} <= set(PIPES)
        assert sum(bool(r["source_line"]) for r in rows) >= 0.9 * len(rows)
        blocks = one.record.evidence["blocks"]
        assert [r["block"] for r in rows] == [b["number"] for b in blocks for _ in range(b["start"], b["end"] + 16, 16)]
        assert all(len(r["reuse"]) == r["text"].count(".reuse") for r in rows)
        assert late_results(rows) > 0


def late_results(rows):
    """Inside each block, a register written by an instruction that sets a scoreboard is not touched before something
    has waited for it. Read from other bits, the fields would break this at once. How many such results there are."""
    pending, block, checked = {}, None, 0
    for row in rows:
        if row["block"] != block:
            pending, block = {}, row["block"]
        if row["opcode"].startswith("DEPBAR"):
            pending = {r: b for r, b in pending.items() if f"SB{b}" not in row["text"]}
        pending = {r: b for r, b in pending.items() if b not in row["waits"]}
        used = set(re.findall(r"\bU?R\d+\b", row["text"]))
        assert not used & pending.keys(), (row["text"], pending)
        if row["write_barrier"] is not None and row["operands"]:
            written = re.findall(r"^U?R\d+\b", row["operands"][0])
            pending |= dict.fromkeys(written, row["write_barrier"])
            checked += len(written)
    return checked


CUDA = """
__device__ __forceinline__ float inner(float v) {
    return rsqrtf(v);  // RSQ
}
__device__ __forceinline__ int counted(float v) {
    return __popc(__float_as_int(v));  // POPC
}
extern "C" __global__ void planted(const float* x, float* out, long long n) {
    float4 v = ((const float4*)x)[threadIdx.x];  // LOAD
    float s = inner(v.x * v.y);  // CALLS_RSQ
    s += counted(v.z + v.w);  // CALLS_POPC
    s += __shfl_xor_sync(0xffffffffu, s, 1);  // SHFL
    atomicAdd(out, s);  // ATOM
}
// assay: planted<<<1, 32>>>(x, out, n)
"""
CUPY = f'''
import cupy
from assay import kernel
from assay.backends.cupy import array

CODE = r"""{CUDA}"""
raw = cupy.RawKernel(CODE, "planted", options=("-std=c++17",))

@kernel("gelu", backend="cupy")
def mine(x, *, out):
    raw((1,), (32,), (array(x), array(out), x.numel()))
'''
TRITON = """
import triton
import triton.language as tl
from assay import kernel

@triton.jit
def inner(v):
    return tl.rsqrt(v)  # RSQ

@triton.jit
def planted(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)  # LOAD
    s = inner(v * v + 1)  # CALLS_RSQ
    t = tl.sum(s, 0)  # SHFL
    tl.atomic_add(out, t)  # ATOM

@kernel("gelu")
def mine(x, *, out):
    planted[(1,)](x, out, BLOCK=512, num_warps=4)
"""
NUMBA = """
from numba import cuda
from numba.cuda import libdevice
from assay import kernel
from assay.backends.numba import launch

@cuda.jit(device=True, lineinfo=True)
def inner(v):
    return libdevice.rsqrtf(v)  # RSQ

@cuda.jit
def planted(x, out):
    i = cuda.threadIdx.x
    s = inner(x[i])  # CALLS_RSQ
    c = cuda.popc(i * 7)  # POPC
    s += cuda.shfl_xor_sync(0xffffffff, s, 1)  # SHFL
    cuda.atomic.add(out, c, s)  # ATOM

@kernel("gelu", backend="numba")
def mine(x, *, out):
    launch(planted, 1, 32, x, out)
"""
PLANTED = {
    "cuda": (CUDA, "planted.cu", {"RSQ", "POPC", "LOAD", "SHFL", "ATOM"}),
    "cupy": (CUPY, "planted.py", {"RSQ", "POPC", "LOAD", "SHFL", "ATOM"}),
    "triton": (TRITON, "planted.py", {"RSQ", "LOAD", "SHFL", "ATOM"}),
    "numba": (NUMBA, "planted.py", {"RSQ", "POPC", "SHFL", "ATOM"}),
}
WHAT = {
    "RSQ": (r"MUFU\.RSQ", r"rsqrt"),
    "POPC": (r"POPC", r"popc"),
    "LOAD": (r"LDG\.E\.128", r"ld\.global.*v4"),
    "SHFL": (r"SHFL", r"shfl"),
    "ATOM": (r"(RED|ATOM)", r"(red|atom)\."),
}


@pytest.mark.slow
@pytest.mark.parametrize("language", PLANTED)
def test_planted_instructions_lead_back_to_their_lines(language, tmp_path):
    text, name, planted = PLANTED[language]
    file = tmp_path / name
    file.write_text(text)
    op = "gelu" if language == "cuda" else None
    found = list(inspections([file], Options(TARGETS, workload="n=4096,dtype=fp32", op=op)))
    assert len(found) == len(TARGETS)
    code = CUDA if language == "cupy" else text
    line_of = {m[1]: i for i, line in enumerate(code.splitlines(), 1) if (m := re.search(r"[/#]+ ([A-Z_]+)$", line))}
    for one in found:
        assert one.record.status == "compiled", one.record.reason  # and so its gates hold, on every target
        ptx = one.ptx.splitlines()
        for plant in planted:
            opcode, in_ptx = WHAT[plant]
            rows = [r for r in one.record.instructions if re.match(opcode, r["opcode"])]
            assert rows, (plant, one.record.evidence["target"])
            for row in rows:
                lines = [row["source_line"], *(line for _, line in row["inlined"])]
                assert line_of[plant] in lines, (plant, row)
                if language != "triton" or plant != "SHFL":  # Triton's own reduction stands between
                    assert row["source_line"] == line_of[plant], (plant, row)
                if f"CALLS_{plant}" in line_of and row["inlined"]:
                    assert line_of[f"CALLS_{plant}"] in lines[1:], (plant, row)
                assert re.search(in_ptx, ptx[row["ptx_line"] - 1]), (plant, ptx[row["ptx_line"] - 1])
        if language == "triton":
            (load,) = {r["ir_line"] for r in one.record.instructions if r["opcode"].startswith("LDG")}
            assert "tt.load" in one.ir.splitlines()[load - 1]


def test_live_registers_are_counted_in_code_of_any_ptxas():
    """Triton brings its own; that the counts are nvdisasm's is in test_live.py."""
    for one in inspections(["gelu/triton", "gelu/cuda"], Options(("sm_90a",))):
        counts = [r["live_registers"] for r in one.record.instructions]
        assert not any("live_registers" in u for u in one.record.evidence["unavailable"])
        assert max(counts) == one.record.evidence["summary"]["live_registers"]
        assert 0 < max(counts) <= one.record.evidence["summary"]["registers"]


@pytest.mark.parametrize(
    ("capability", "block", "registers", "shared", "blocks", "limit"),
    [
        ((9, 0), 256, 32, 0, 8, "warps"),
        ((9, 0), 256, 128, 26 * 1024, 2, "registers"),
        ((8, 0), 1024, 65, 0, 0, "registers"),
        ((9, 0), 128, 40, 100 * 1024, 2, "shared memory"),
        ((8, 9), 32, 16, 0, 24, "blocks"),
        ((8, 6), 768, 32, 0, 2, "warps"),
    ],
)
def test_occupancy_as_nvidias_calculator_has_it(capability, block, registers, shared, blocks, limit):
    got = occupancy(CHIPS[capability], block, registers, shared)
    assert got.blocks == blocks and limit in got.limits


@given(st.sampled_from(sorted(CHIPS)), st.integers(1, 32), st.integers(16, 255), st.integers(0, 90_000))
def test_what_would_lift_it_lifts_it(capability, warps, registers, shared):
    chip = CHIPS[capability]
    now = occupancy(chip, 32 * warps, registers, shared)
    assert now.warps <= chip.threads // 32 and now.blocks <= chip.blocks
    if found := re.match(r"(\d+) (registers|bytes) .* (\d+) blocks", now.lift):
        changed = {"registers": registers, "shared": shared}
        changed["registers" if found[2] == "registers" else "shared"] = int(found[1])
        assert occupancy(chip, 32 * warps, **changed).blocks == int(found[3]) > now.blocks


def test_the_document_and_the_tables(tmp_path):
    csv, parquet = tmp_path / "i.csv", tmp_path / "i.parquet"
    done = command("inspect", "gelu/cuda", "--target", "sm_90", "--json", "--csv", csv, "--parquet", parquet)
    (record,) = json.loads(done.out)["records"]
    needed = {"address", "opcode", "source_file", "source_line", "ptx_line"}
    assert record["verb"] == "inspect" and all(needed <= set(i) for i in record["instructions"])
    assert len(csv.read_text().splitlines()) == len(record["instructions"]) + 1
    from pyarrow.parquet import read_table

    assert read_table(parquet).num_rows == len(record["instructions"])


def test_what_is_no_gpu_code_says_so():
    (record,) = assay.inspect("gelu/njit")
    assert record.status == "skipped" and "njit" in record.reason


GATED = """
import triton
import triton.language as tl
from assay import kernel


@triton.jit
def _double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)  # HERE
    tl.store(out + i, v / (1 + tl.exp(-v)), mask=i < n)


@kernel("silu", expects={"spills": 0, "widest_global_load": 128, "max_registers": 64, "avoids": ["DFMA", "LDL"]})
def wide(x, *, out):
    _double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)


@kernel("silu", expects={"widest_global_load": 128, "uses": "HGMMA"})
def narrow(x, *, out):
    _double[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
"""


@pytest.mark.slow
def test_a_gate_fails_the_check_and_names_the_line(tmp_path):
    file = tmp_path / "gated.py"
    file.write_text(GATED)
    line = next(i for i, text in enumerate(GATED.splitlines(), 1) if "HERE" in text)
    found = {r.kernel: r for r in assay.check(file, dtypes="fp32", workloads=2)}
    assert found["silu/triton:wide"].status == "pass", found["silu/triton:wide"].reason
    narrow = found["silu/triton:narrow"]
    assert narrow.status == "fail" and narrow.evidence["detector"] == "gate"
    assert f"the widest global load has 32 bits, 128 expected at {file}:{line}" in narrow.reason
    assert "no HGMMA in the code" in narrow.reason
    (record,) = [r for r in assay.inspect(file, targets="sm_80") if r.kernel == "silu/triton:narrow"]
    assert record.status == "fail" and "gate: " in record.reason


def test_a_gate_nobody_knows_is_refused(tmp_path):
    file = tmp_path / "gated.py"
    file.write_text(GATED.replace('"uses"', '"use"'))
    with pytest.raises(assay.AssayError, match="expects 'use', which is no gate"):
        list(assay.inspect(file))


@pytest.mark.slow
def test_bare_files_are_taken_as_they_are(tmp_path):
    source = (
        "__global__ void mine(float* x, int n) {\n  if (threadIdx.x < n) x[threadIdx.x] = rsqrtf(x[threadIdx.x]);\n}\n"
    )
    (tmp_path / "k.cu").write_text(source)
    for kind in ("cubin", "ptx"):
        subprocess.run(
            [
                host.tool("nvcc"),
                f"-{kind}",
                "-arch=sm_80",
                "-lineinfo",
                "-o",
                tmp_path / f"k.{kind}",
                tmp_path / "k.cu",
            ],
            check=True,
        )
    for name, target in (("k.cu", "sm_90"), ("k.cubin", "sm_80"), ("k.ptx", "sm_90")):
        (record,) = assay.inspect(tmp_path / name, targets="sm_90")
        assert record.status == "compiled" and record.evidence["target"] == target, record.reason
        assert record.kernel == f"{name}:mine"
        (rsqrt,) = [r for r in record.instructions if r["opcode"] == "MUFU.RSQ"]
        assert rsqrt["source_line"] == 2
    (tmp_path / "bad.cu").write_text("__global__ void mine(float* x) { x[0] = y; }")
    (record,) = assay.inspect(tmp_path / "bad.cu")
    assert record.status == "fail" and 'identifier "y" is undefined' in record.reason


def test_what_changed_since_an_older_document(tmp_path):
    """The same kernel at another width stands for another compiler's code."""
    (old,) = assay.inspect("gelu/cuda", workload="n=4096,dtype=fp32")
    (new,) = assay.inspect("gelu/cuda", workload="n=4096,dtype=fp32")
    (same,) = changes([old], [new])
    assert same.status == "pass" and "the same machine code" in same.reason
    (other,) = assay.inspect("gelu/cuda", workload="n=4096,dtype=fp32,offset=1")
    newer = replace(
        other, workload=old.workload, evidence=other.evidence | {"name": old.evidence["name"], "compiler": "nvrtc 99.9"}
    )
    file = tmp_path / "old.json"
    file.write_text(json.dumps(document([old])))
    (changed,) = changes(read(file), [newer])
    assert changed.status == "inconclusive" and changed.reason.startswith(
        "nvrtc 13.0 → nvrtc 99.9, the source is the same"
    )
    assert "Bits of each global load" in changed.reason
    (unknown,) = changes([old], [replace(new, kernel="silu/cuda")])
    assert unknown.status == "skipped"


@pytest.mark.slow
def test_ptxas_own_remarks_stand_in_the_summary_where_it_makes_the_very_same_code():
    spilling = next(assay.inspect("conv2d/triton")).evidence
    assert any("Registers are spilled to local memory" in line for line in spilling["summary"]["remarks"])
    plain = next(assay.inspect("gelu/cuda")).evidence
    assert f"Used {plain['summary']['registers']} registers" in " ".join(plain["summary"]["remarks"])
    linked = next(assay.inspect("gelu/numba")).evidence  # optimised at link time: no ptxas makes that of its PTX
    assert linked["summary"]["remarks"] is None and any("remarks" in line for line in linked["unavailable"])


def test_remarks_about_other_kernels_of_the_same_ptx_are_left_out():
    text = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'mine' for 'sm_90a'
ptxas info    : Function properties for mine
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
ptxas warning : Registers are spilled to local memory in function 'mine'
"""
    assert remarks_on(text, "mine") == [
        "8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads",
        "Used 40 registers, used 1 barriers",
        "warning: Registers are spilled to local memory in function 'mine'",
    ]


def test_nvcc_and_nvrtc_give_the_same_code_of_one_address():
    hashes = {c: next(assay.inspect("silu/cuda", compiler=c)).evidence["text_hash"] for c in ("nvrtc", "nvcc")}
    assert hashes["nvrtc"] == hashes["nvcc"]
    with pytest.raises(UsageError, match="gelu/triton is not built by nvcc"):
        list(assay.inspect("gelu/triton", compiler="nvcc"))


def test_the_way_through_a_kernel_without_loops_has_a_length_and_through_one_with_loops_none():
    straight, looping = (next(assay.inspect(k)).evidence["summary"] for k in ("gelu/triton", "sum/cupy"))
    assert looping["loops"] and looping["cycles"] is None
    assert not straight["loops"] and straight["cycles"] >= straight["instructions"] / 2
    assert straight["cycles"] <= sum(straight["cycles_per_block"].values())


def test_gates_may_speak_of_one_launch_among_several():
    found = list(assay.inspect("layernorm_backward/cuda", dtypes="bf16"))
    assert all(r.status == "compiled" for r in found)
    gated = {r.evidence["name"].split("<")[0]: "gates" in r.evidence for r in found}
    assert gated == {"layernorm_backward_whole": True, "join_parts": False}


def test_a_tunable_gives_other_code_and_stands_in_the_record():
    plain, wide = (next(assay.inspect("gelu/triton", **more)) for more in ({}, {"parameters": {"BLOCK": 2048}}))
    assert plain.evidence["launch"]["grid"] == [2 * n for n in wide.evidence["launch"]["grid"]]
    assert wide.evidence["parameters"] == {"BLOCK": 2048} and "parameters" not in plain.evidence
    assert wide.replay.startswith("assay inspect gelu/triton --param BLOCK=2048 ")


def test_gates_speak_of_the_typical_workload_alone():
    odd = next(assay.inspect("gelu/cuda", workload="n=1001,dtype=fp32"))
    assert odd.status == "compiled" and "gates" not in odd.evidence


def test_code_that_a_gpu_may_not_launch_is_marked():
    doubted = next(assay.inspect("sum/cupy"))
    assert any("on a GPU it may take one that it builds on CUB" in line for line in doubted.evidence["unavailable"])
    assert doubted.artifacts[0]["doubt"] and not next(assay.inspect("gelu/cupy")).artifacts[0]["doubt"]


@pytest.mark.slow
def test_subcommands_say_what_their_old_flags_said_and_the_flags_say_where_to_go(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    two = ("gelu/cuda", "silu/cuda")
    new, old = command("inspect", "diff", *two, "--json"), command("inspect", *two, "--diff", "--json")
    reasons = [json.loads(done.out)["records"][0]["reason"] for done in (new, old)]
    assert reasons[0] == reasons[1] and "silu/cuda has" in reasons[0]
    assert not new.err and "assay inspect diff gelu/cuda silu/cuda" in old.said
    side = command("inspect", "across", *two)
    assert side.code == 0 and all(name in side.out for name in two) and "registers" in side.out


def test_the_word_of_a_subcommand_is_reserved_and_a_file_of_that_name_is_reached_with_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "diff").touch()
    assert "0 kernels to compare" in command("inspect", "diff", "gelu/torch").said
    reached = command("inspect", "./diff")
    assert reached.code == 1 and "the file is empty" in reached.said
