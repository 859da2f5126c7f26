"""Live registers, counted by Assay, against nvdisasm's own: on the library, on matrix products, on random programs."""

import random
import re
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay import host
from assay.inspect import Options, inspections
from assay.inspect.code_in import assemble
from assay.isa import sass
from assay.isa.cubin import functions
from assay.isa.cubin import target as target_of
from assay.isa.live import Live, live_registers
from assay.isa.registers import touched
from assay.target import Target

needs_nvdisasm = pytest.mark.skipif(host.tool("nvdisasm") is None, reason="needs nvdisasm")
needs_ptxas = pytest.mark.skipif(host.tool("ptxas") is None, reason="needs ptxas")
KERNELS = ("softmax/cuda", "mean_var/cupy", "euclidean_distance/numba", "softmax/triton")
TARGETS = ("sm_80", "sm_90a", "sm_100")


def told_by_nvdisasm(cubin, path):
    """Symbol → address → (live general registers, those read, those written), from the marks of its listing."""
    file = path.with_suffix(".cubin")
    file.write_bytes(under_a_new_header(cubin))
    listing = subprocess.run([host.tool("nvdisasm"), "-c", "-plr", file], capture_output=True, text=True, check=True)
    found, here, columns = {}, {}, []
    for line in listing.stdout.splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line):
            here = found.setdefault(section[1].strip('"'), {})
        table = line.partition("// |")[2]
        if re.match(r" +#", table):
            columns = [(int(m[0]), m.start(), m.end()) for m in re.finditer(r"\d+", table.partition("|")[0])]
        elif shown := re.match(r"\s+/\*([0-9a-f]{4,})\*/", line):
            marks = {register: mark for register, start, end in columns if (mark := table[start:end].strip())}
            read, written = ({r for r, mark in marks.items() if mark in kind} for kind in ("vx", "^x"))
            here[int(shown[1], 16)] = (int(table[:4].strip(" |") or 0), read, written)
            assert len(marks) == here[int(shown[1], 16)][0], line
    return found


def under_a_new_header(cubin):
    """nvdisasm counts only under an ELF header as it is since CUDA 13; the code beneath may be of an older ptxas."""
    if cubin[8] >= 8:
        return cubin
    number = int(re.search(r"\d+", str(target_of(cubin)))[0])
    return cubin[:7] + b"\x41\x08" + cubin[9:48] + struct.pack("<I", 0x0A000004 | number << 8) + cubin[52:]


def registers(bits):
    return {r for r in range(255) if bits >> r & 1}


def compare(instructions, counts, told):
    """At every instruction that nvdisasm lists: what it reads and writes, and how many are live. It leaves out what
    nothing reaches."""
    for i in instructions:
        if i.address in told:
            count, read, written = told[i.address]
            found = touched(i)
            if i.opcode != "CALL":  # what the ABI adds is not in its operands
                assert (registers(found.reads), registers(found.writes)) == (read, written), i.text
            assert counts[i.address] == count, (hex(i.address), i.text)
    assert len(told) > 10


def counted(cubin):
    code = sass.disassemble(cubin)
    return code, live_registers(code, {f.symbol: f.registers for f in functions(cubin)})


@pytest.mark.slow
@needs_nvdisasm
@pytest.mark.parametrize("target", [pytest.param(t, marks=[] if t == "sm_90a" else pytest.mark.whole) for t in TARGETS])
def test_the_librarys_code_is_counted_as_nvdisasm_counts_it(target, tmp_path):
    """In every language; Triton's code is of another ptxas."""
    with ThreadPoolExecutor(1) as beside:
        found = [
            (one, beside.submit(told_by_nvdisasm, one.cubin, tmp_path / str(i)))
            for i, one in enumerate(inspections(KERNELS, Options((target,))))
        ]
    assert len(found) == len(KERNELS)
    for one, told in found:
        rows = {r["address"]: r for r in one.record.instructions}
        here = told.result()[one.record.evidence["symbol"]]
        assert all(rows[address]["opcode"] == "NOP" for address in rows.keys() - here.keys()), "padding alone"
        compare(
            [instruction(r["text"], address) for address, r in rows.items()],
            {address: r["live_registers"] for address, r in rows.items()},
            here,
        )


def instruction(text, address=0):
    (found,) = sass.read(f"\t.section\t.text.f\n        /*{address:04x}*/   {text} ;\n")["f"].instructions
    return found


RULES = [
    ("FADD R0, R4, -R5.reuse", {4, 5}, {0}),
    ("@P0 FFMA R0, |R0|, c[0x0][0x160], R3", {0, 3}, {0}),
    ("MOV R3, RZ", set(), {3}),
    ("MOV.64 R12, 0x3fd8000000000000", set(), {12, 13}),
    ("LOP3.LUT P1, R12, R5, 0x1f, RZ, 0xc0, !PT", {5}, {12}),
    ("IADD3.X R21, P0, P1, ~R0, R21, R7, P0, P1", {0, 7, 21}, {21}),
    ("IADD.64 R38, -R2, R38", {2, 3, 38, 39}, {38, 39}),
    ("ISETP.GE.U32.AND P0, PT, R8, UR8, PT", {8}, set()),
    ("ISETP.LE.U64.AND P0, PT, R6, R4, PT", {4, 5, 6, 7}, set()),
    ("IMAD R0, R7, UR5, R3", {3, 7}, {0}),
    ("IMAD.WIDE.U32 R22, P0, R20, R29, R16", {16, 17, 20, 29}, {22, 23}),
    ("IMAD.HI.U32 R9, R16, R18, R10", {10, 11, 16, 18}, {9}),
    ("LEA.HI.X R7, R2, R11, R0, 0x2, P1", {0, 2, 11}, {7}),
    ("SHF.L.U64.HI R22, R2, 0x3, R5", {2, 5}, {22}),
    ("DFMA R8, |R2|, -UR6, R12", {2, 3, 12, 13}, {8, 9}),
    ("DSETP.GE.AND P0, PT, |R2|, R4, PT", {2, 3, 4, 5}, set()),
    ("MUFU.RCP64H R7, R9", {9}, {7}),
    ("F2F.F64.F32 R4, R7", {7}, {4, 5}),
    ("F2F.F32.F64 R7, R12", {12, 13}, {7}),
    ("F2I.S64.F64.TRUNC R8, R12", {12, 13}, {8, 9}),
    ("F2I.FTZ.U32.TRUNC.NTZ R3, R2", {2}, {3}),
    ("I2F.U64.RP R24, R18", {18, 19}, {24}),
    ("I2F.F64 R24, R2", {2}, {24, 25}),
    ("FRND.F64.TRUNC R8, R18", {18, 19}, {8, 9}),
    ("CS2R R16, SRZ", set(), {16, 17}),
    ("CS2R.32 R0, SR_CLOCKLO", set(), {0}),
    ("S2R R5, SR_TID.X", set(), {5}),
    ("R2UR UR8, R0", {0}, set()),
    ("R2P PR, R5.reuse, 0x7e", {5}, set()),
    ("P2R R37, PR, R4, 0x40", {4}, {37}),
    ("LDG.E.128.CONSTANT R12, desc[UR6][R6.64+0x10]", {6, 7}, {12, 13, 14, 15}),
    ("LDG.E R2, [R4.U32+UR6]", {4}, {2}),
    ("LDG.E.ENL2.256 R8, R4, desc[UR4][R2.64], 0x7f", {2, 3}, {4, 5, 6, 7, 8, 9, 10}),
    ("STG.E.ENL2.256 desc[UR4][R2.64], R12, R8, 0xfe", {2, 3, 8, 9, 10, 11, 12, 13, 14}, set()),
    ("LDS.64 R4, [R9+UR4]", {9}, {4, 5}),
    ("STS.U8 [R31], R30", {30, 31}, set()),
    ("STL.128 [R1+0x10], R156", {1, 156, 157, 158, 159}, set()),
    ("LDC.64 R2, c[0x0][R8+0x380]", {8}, {2, 3}),
    ("LDGSTS.E.BYPASS.128 [R7], desc[UR6][R2.64], P4", {2, 3, 7}, set()),
    ("ATOMG.E.CAS.64.STRONG.GPU PT, R4, [R2], R6, R8", {2, 3, 6, 7, 8, 9}, {4, 5}),
    ("ATOMG.E.ADD.F32x4.FTZ.RN.STRONG.GPU PT, RZ, desc[UR4][R2.64], R4", {2, 3, 4, 5, 6, 7}, set()),
    ("ATOMS.CAST.SPIN P0, [R4+0x10], R6, R7", {4, 6, 7}, set()),
    ("ATOMS.CAST.SPIN.64 R6, [R11], R4, R8", {4, 5, 8, 9, 11}, {6, 7}),
    ("RED.E.ADD.F64.RN.STRONG.GPU [R4.64], R2", {2, 3, 4, 5}, set()),
    ("SHFL.IDX P0, R9, R4, R5, R6", {4, 5, 6}, {9}),
    ("MATCH.ANY.U64 R13, R6", {6, 7}, {13}),
    ("SYNCS.ARRIVE.TRANS64 R8, [R13+URZ], R6", {6, 13}, {8, 9}),
    ("LDSM.16.MT88.4 R4, [R0+UR5]", {0}, {4, 5, 6, 7}),
    ("LDSM.8.MT1616.2 R4, [R0]", {0}, {4, 5, 6, 7}),
    ("STSM.16.M88.2 [R0], R4", {0, 4, 5}, set()),
    ("MOVM.16.MT88 R7, R2", {2}, {7}),
    ("MOVM.U4TO8.M832 R16, R19", {19}, {16, 17}),
    ("HMMA.16816.F32.BF16 R8, R12.reuse, R6, RZ", {6, 7, 12, 13, 14, 15}, {8, 9, 10, 11}),
    ("HMMA.1688.F32.TF32 R8, R12, R6, R16", {6, 7, *range(12, 20)}, {8, 9, 10, 11}),
    ("HMMA.SP.16832.F16 R6, R40, R12, R16, R19, 0x0", {*range(12, 18), 19, 40, 41, 42, 43}, {6, 7}),
    ("IMMA.16832.S8.S8.SAT R4, R8.ROW, R2.COL, R12", {2, 3, 8, 9, 10, 11, 12, 13, 14, 15}, {4, 5, 6, 7}),
    ("IMMA.8832.S4.S4 R8, R5.ROW, R6.COL, R10", {5, 6, 10, 11}, {8, 9}),
    ("DMMA.16x8x4 R8, R4, R18, R8", {*range(4, 16), 18, 19}, {*range(8, 16)}),
    ("HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8].tnspB, R24, gsb0", {*range(24, 56)}, {*range(24, 56)}),
    ("HGMMA.64x16x16.F16 R24, R32, gdesc[UR4], RZ, !UPT", {32, 33, 34, 35}, {24, 25, 26, 27}),
    ("LDTM.16dp256bit.x2 R4, tmem[UR4]", set(), {*range(4, 12)}),
    ("STTM.x64 tmem[UR6], R4", {*range(4, 68)}, set()),
    ("FFMA2 R8, R32.reuse.F32, R16.F32x2.HI_LO, R8.F32x2.HI_LO", {8, 9, 16, 17, 32}, {8, 9}),
    ("BRX R8 -0xe0", {8, 9}, set()),
    ("RET.REL.NODEC R6 `(_Z1kR4)", {6, 7}, set()),
    ("DMUL R8, R10, c[`(R4.const)]", {10, 11}, {8, 9}),
    ("UIADD3.64 UR28, UPT, UPT, UR36, 0x2, URZ", set(), set()),
]


@pytest.mark.parametrize(("text", "reads", "writes"), RULES)
def test_which_registers_an_instruction_touches(text, reads, writes):
    found = touched(instruction(text))
    assert (registers(found.reads), registers(found.writes)) == (reads, writes)


@pytest.mark.parametrize(
    "text",
    [
        "TEX.LL R10, R8, R8, R7, UR4, 2D",
        "NEWOP R0, R1",
        "FADD.64 R2, R4, R6",
        "STG.???0.128 [R2.64], R4",
        "HMMA.INVALID3.F16 R0, R4, R8, R12",
        "HGMMA.F32",
        "MOVM R0, R1",
    ],
)
def test_what_nobody_has_listed_is_not_guessed(text):
    assert touched(instruction(text)) is None
    code = sass.read(listing("MOV R4, 0x1", text, "EXIT"))
    found = live_registers(code, {"f": 32})["f"]
    assert found.counts == {}
    assert re.match(r"\w+", text)[0] in found.unknown
    assert "0x10" in found.unknown


def listing(*lines, labels=()):
    named = dict(labels)
    label = lambda i: f"{named[i]}:\n" if i in named else ""  # noqa: E731
    shown = (f"{label(i)}        /*{16 * i:04x}*/   {line} ;\n" for i, line in enumerate(lines))
    return "\t.section\t.text.f\n" + "".join(shown)


def test_a_branch_of_which_nobody_knows_where_it_goes_leaves_the_function_uncounted():
    found = live_registers(sass.read(listing("MOV R4, 0x1", "BRX R8 -0xe0", "EXIT")), {"f": 32})["f"]
    assert found.counts == {}
    assert "BRX" in found.unknown


def test_a_function_without_instructions_has_no_counts():
    assert live_registers({"f": sass.Function("f", (), {})}, {"f": 8})["f"] == Live({})


def test_one_function_of_a_cubin_may_be_counted_and_another_not():
    code = sass.read(listing("TXQ R4, R6", "EXIT") + listing("MOV R4, 0x1", "EXIT").replace("text.f", "text.g"))
    found = live_registers(code, {"f": 8, "g": 8})
    assert found["f"].unknown
    assert found["g"].counts == {0: 2, 16: 1}, "R1, which points to the stack, and R4"


def test_time_grows_with_the_code_and_no_faster():
    """Loops and branches out of them. nvdisasm's own time grows with the square."""

    def seconds(blocks):
        lines, labels = [], {}
        for b in range(blocks):
            labels[len(lines)] = f".L_{b}"
            lines += [f"FADD R{(b + i) % 200 + 2}, R{(b * i) % 200 + 2}, R{i}" for i in range(2, 96)]
            lines += [f"@P0 BRA `(.L_{b - b % 3})", f"@!P1 BRA `(.L_{min(b + 5, blocks - 1)})"]
        lines.append("EXIT")
        code = sass.read(listing(*lines, labels=labels.items()))
        began = time.process_time()
        (found,) = live_registers(code, {"f": 255}).values()
        assert len(found.counts) == len(lines)
        return (time.process_time() - began) / len(lines)

    seconds(20)
    assert seconds(520) < 3 * seconds(65), "50,000 instructions against 6,000, for each instruction"


# What the library does not reach ----------------------------------------------------------------------------------


def product(shape, types, a, b, c, kind="b32", of="b32", sparse=False):
    """mma with fragments of so many registers, loaded and stored."""
    name = lambda letter, count: "{" + ", ".join(f"{letter}{i}" for i in range(count)) + "}"  # noqa: E731
    loads = [f"ld.global.{of} a{i}, [p+{8 * i}];" for i in range(a)]
    loads += [f"ld.global.{of} b{i}, [p+{512 + 8 * i}];" for i in range(b)]
    loads += [f"ld.global.{kind} c{i}, [p+{1024 + 8 * i}];" for i in range(c)]
    operation = "mma.sp::ordered_metadata.sync" if sparse else "mma.sync"
    call = f"{operation}.aligned.{shape}.row.col.{types} {name('c', c)}, {name('a', a)}, {name('b', b)}, {name('c', c)}"
    stores = [f"st.global.{kind} [p+{2048 + 8 * i}], c{i};" for i in range(c)]
    call += ", n, 0x0;" if sparse else ";"
    return "\n".join(["{", f".reg .{of} a<16>, b<16>; .reg .{kind} c<16>;", *loads, call, *stores, "}"])


def group_product(columns, depth, types, count, tail, kind="f32", of_registers=False):
    """wgmma, its first factor from shared memory or from registers."""
    names = ", ".join(f"c{i}" for i in range(count))
    factor = "{a0, a1, a2, a3}" if of_registers else "d"
    return "\n".join(
        [
            "{",
            f".reg .{kind} c<{count}>; .reg .b32 a<4>;",
            "ld.global.v4.b32 {a0, a1, a2, a3}, [p];",
            *(f"ld.global.{kind} c{i}, [p+{16 + 8 * i}];" for i in range(count)),
            "wgmma.fence.sync.aligned;",
            f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.{types} {{{names}}}, {factor}, d{tail};",
            "wgmma.commit_group.sync.aligned;",
            "wgmma.wait_group.sync.aligned 0;",
            *(f"st.global.{kind} [p+{2048 + 8 * i}], c{i};" for i in range(count)),
            "}",
        ]
    )


def tensor_memory(shape, times, count):
    names = ", ".join(f"a{i}" for i in range(count))
    return "\n".join(
        [
            "{",
            f".reg .b32 a<{count}>;",
            f"tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {{{names}}}, [n];",
            "tcgen05.wait::ld.sync.aligned;",
            f"tcgen05.st.sync.aligned.{shape}.x{times}.b32 [n+64], {{{names}}};",
            "tcgen05.wait::st.sync.aligned;",
            *(f"st.global.b32 [p+{4 * i}], a{i};" for i in range(count)),
            "}",
        ]
    )


def moved(kind, how, count, back=""):
    """Something that fills `count` registers, and a store of each."""
    stores = back or " ".join(f"st.global.{kind} [p+{256 + 16 * i}], a{i};" for i in range(count))
    return f"{{ .reg .{kind} a<{max(8, count)}>; {how} {stores} }}"


ANYWHERE = [
    product("m16n8k16", "f32.f16.f16.f32", 4, 2, 4, "f32"),
    product("m16n8k8", "f32.bf16.bf16.f32", 2, 1, 4, "f32"),
    product("m16n8k16", "f16.f16.f16.f16", 4, 2, 2),
    product("m16n8k16", "f32.bf16.bf16.f32", 4, 2, 4, "f32"),
    product("m16n8k8", "f32.tf32.tf32.f32", 4, 2, 4, "f32"),
    product("m16n8k4", "f32.tf32.tf32.f32", 2, 1, 4, "f32"),
    product("m16n8k32", "s32.s8.s8.s32", 4, 2, 4),
    product("m16n8k16", "s32.u8.u8.s32", 2, 1, 4),
    product("m8n8k4", "f64.f64.f64.f64", 1, 1, 2, "f64", "f64"),
    product("m16n8k32", "f32.f16.f16.f32", 4, 4, 4, "f32", sparse=True),
    product("m16n8k64", "s32.s8.s8.s32", 4, 4, 4, sparse=True),
    moved("b32", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {a0}, [s];", 1),
    moved("b32", "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {a0, a1}, [s];", 2),
    moved("b32", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a0, a1, a2, a3}, [s];", 4),
    moved("b32", "ld.global.v2.b32 {a0, a1}, [p]; atom.global.cas.b32 a2, [q], a0, a1;", 3),
    moved(
        "b64",
        "ld.global.v2.b64 {a0, a1}, [p]; atom.global.cas.b64 a2, [q], a0, a1; atom.shared.cas.b64 a3, [s], "
        "a0, a2; atom.global.add.u64 a4, [q], a0; red.global.max.s64 [q], a1;",
        5,
    ),
    moved(
        "f64",
        "ld.global.v2.f64 {a0, a1}, [p]; fma.rn.f64 a2, a0, a1, a0; sqrt.rn.f64 a3, a2; rcp.rn.f64 a4, a3; "
        "cvt.rni.f64.f64 a5, a4; cvt.rn.f32.f64 f, a5; cvt.f64.f32 a6, f; cvt.rzi.s64.f64 l, a6; "
        "cvt.rn.f64.s64 a7, l;",
        8,
    ),
    moved(
        "b32",
        "ld.global.v4.b32 {a0, a1, a2, a3}, [p]; shfl.sync.idx.b32 a4, a0, a1, a2, a3; "
        "redux.sync.add.s32 a5, a4, -1; match.any.sync.b64 a6, l, a5; activemask.b32 a7;",
        8,
    ),
    "mov.u64 l, %clock64; st.global.b64 [q], l; mad.wide.u32 l, n, n, l; mul.hi.s64 l, l, q; rem.s64 l, l, q;"
    "st.global.b64 [q], l; cp.async.cg.shared.global [s], [p], 16; cp.async.wait_all;",
]
SINCE_90 = [
    product("m16n8k16", "f64.f64.f64.f64", 8, 4, 4, "f64", "f64"),
    product("m16n8k4", "f64.f64.f64.f64", 2, 1, 4, "f64", "f64"),
    moved("b128", "ld.global.b128 a0, [p]; ld.global.b128 a1, [p+16]; atom.global.cas.b128 a2, [q], a0, a1;", 3),
    moved(
        "b32",
        "ld.global.v4.b32 {a0, a1, a2, a3}, [p]; stmatrix.sync.aligned.m8n8.x1.shared.b16 [s+64], {a3};"
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [s], {a0, a1, a2, a3};",
        0,
        back=" ",
    ),
    "mbarrier.init.shared.b64 [s], 32; mbarrier.arrive.shared.b64 l, [s]; st.global.b64 [q], l;"
    "mbarrier.try_wait.shared::cta.b64 z, [s], l, n; @z st.global.b64 [p], l;",
]
ONLY_90A = [
    group_product(8, 16, "f32.bf16.bf16", 4, ", 1, 1, 1, 0, 0"),
    group_product(128, 16, "f32.f16.f16", 64, ", 1, 1, 1, 0", of_registers=True),
    group_product(64, 16, "f16.f16.f16", 16, ", 1, 1, 1, 0, 0", "b32"),
    group_product(64, 8, "f32.tf32.tf32", 32, ", 1, 1, 1", of_registers=True),
    group_product(32, 32, "s32.s8.s8", 16, ", 1", "b32"),
    group_product(64, 32, "f32.e4m3.e5m2", 32, ", 1, 1, 1"),
]
ONLY_100A = [
    tensor_memory("32x32b", 8, 8),
    tensor_memory("16x64b", 4, 4),
    tensor_memory("16x128b", 2, 4),
    tensor_memory("16x256b", 2, 8),
    tensor_memory("32x32b", 64, 64),
    moved(
        "b32",
        "ld.global.v8.b32 {a0, a1, a2, a3, a4, a5, a6, a7}, [p]; "
        "st.global.v8.b32 [q], {a7, a1, a2, a3, a4, a5, a6, a0};",
        0,
        back=" ",
    ),
    moved(
        "b32",
        "ld.global.v8.b32 {a0, _, a2, a3, a4, a5, _, _}, [p+32];",
        1,
        back="st.global.v2.b32 [q], {a0, a2}; st.global.v2.b32 [q+8], {a3, a4}; st.global.b32 [q+16], a5;",
    ),
    moved("b64", "ld.global.v2.b64 {a0, a1}, [p]; fma.rn.f32x2 a2, a0, a1, a0; mul.f32x2 a3, a2, a1;", 4),
]


@pytest.mark.slow
@needs_nvdisasm
@needs_ptxas
@pytest.mark.parametrize(
    ("target", "parts"),
    [("sm_80", ANYWHERE), ("sm_90a", ANYWHERE + SINCE_90 + ONLY_90A), ("sm_100a", ANYWHERE + SINCE_90 + ONLY_100A)],
)
def test_matrix_products_atomics_and_wide_accesses_too(target, parts, tmp_path):
    head = (
        f".version 9.0\n.target {target}\n.address_size 64\n.extern .shared .align 128 .b8 shared[];\n"
        ".visible .entry k(.param .u64 pp, .param .u64 qq, .param .u64 dd, .param .u32 nn) {\n"
        ".reg .b64 p, q, d, l; .reg .b32 s, n, t; .reg .f32 f; .reg .pred z;\n"
        "ld.param.u64 p, [pp]; ld.param.u64 q, [qq]; ld.param.u64 d, [dd]; ld.param.u32 n, [nn]; mov.b32 t, %tid.x;\n"
        "mov.b32 s, shared; mad.lo.u32 s, t, 128, s; mad.wide.u32 p, t, 32, p; ld.global.b64 l, [p]; add.u32 n, n, t;\n"
    )
    cubin = assemble("\n".join([head, *parts, "ret;", "}", ""]).encode(), Target(target), "parts.ptx")
    code, live = counted(cubin)
    compare(code["k"].instructions, live["k"].counts, told_by_nvdisasm(cubin, tmp_path / "k")["k"])


# Random programs --------------------------------------------------------------------------------------------------


def program(seed, length):
    """sm_80: sums, comparisons, branches and exits, many predicated, back and forth over twelve registers."""
    draw = random.Random(seed)
    word = lambda low, high: struct.pack("<QQ", low & (1 << 64) - 1, high)  # noqa: E731
    guard = lambda chance: (draw.randrange(3) | draw.choice((0, 8)) if draw.random() < chance else 7) << 12  # noqa: E731
    register = lambda: draw.choice((255, *range(12)))  # noqa: E731
    code = []
    for at in range(length - 1):
        kind = draw.random()
        if kind < 0.66:
            named = draw.randrange(12) << 16 | register() << 24 | register() << 32
            code.append(word(0x221 | guard(0.5) | named, 0xFE20000000000))  # FADD
        elif kind < 0.78:
            code.append(word(0x20C | guard(0.2) | register() << 24, 0xFE40003F04070 | draw.randrange(3) << 17))  # ISETP
        elif kind < 0.96:
            over = 16 * (draw.randrange(max(0, at - 12), min(length - 1, at + 14)) - at - 1) & (1 << 50) - 1
            code.append(word(0x947 | guard(0.85) | over << 32, 0xFEA0003800000 | over >> 32))  # BRA
        else:
            code.append(word(0x94D | guard(0.6), 0xFEA0003800000))  # EXIT
    return b"".join([*code, word(0x794D, 0xFEA0003800000)])


@needs_nvdisasm
@needs_ptxas
@pytest.mark.parametrize("seed", range(3))
def test_a_random_program_is_counted_as_nvdisasm_counts_it(seed, tmp_path):
    """Its flow is like no compiler's: this is where the treatment of predicates shows."""
    sums = "\n".join("fma.rn.f32 f, f, f, f;" for _ in range(400))
    ptx = (
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .f32 f; .reg .b64 q;\n"
        f"ld.param.u64 q, [p]; ld.global.f32 f, [q];\n{sums}\nst.global.f32 [q], f;\nret;\n}}\n"
    )
    cubin = assemble(ptx.encode(), Target("sm_80"), "sums.ptx")
    (room,) = functions(cubin)
    at, code = cubin.index(room.text), program(seed, 400)
    cubin = cubin[:at] + code + cubin[at + len(code) :]
    code, live = counted(cubin)
    compare(code["k"].instructions, live["k"].counts, told_by_nvdisasm(cubin, tmp_path / "k")["k"])
