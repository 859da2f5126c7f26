"""PTX whose stores come as late as the memory model allows."""

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay import host
from assay.backends import nvrtc
from assay.isa.ptx.delays import delayed
from assay.isa.ptx.postponed import postponed
from assay.target import Target
from ptx_texts import HEAD, NVRTC, by_nvrtc, has_nvrtc

CORPUS = Path(assay.__file__).parent / "selftest" / "corpus"
STORE, ATOM = "st.global.u32 [%a1], %r1;", "atom.global.add.u32 %r9, [%a2], 1;"


class Thread:
    """Runs the few instructions that are used here, in the order in which they stand."""

    def __init__(self, registers):
        self.registers, self.memory, self.signs = dict(registers), {}, []

    def run(self, text):
        for line in filter(None, map(str.strip, text.split("\n"))):
            if line not in "{}" and not line.startswith((".reg", "//")):
                self.step(*re.fullmatch(r"(?:@(!?)(%\w+) )?([\w.]+)\s+([^;]*);", line).groups())
        return self

    def step(self, negated, predicate, opcode, operands):
        if predicate and self.registers[predicate] == (negated == "!"):
            return
        to, *given = [o.strip() for o in operands.split(",")]
        values = [self.value(o) for o in given]
        match opcode:
            case "st.global.u32" | "st.volatile.global.u32" | "red.global.add.u32":
                at = self.address(to)
                self.memory[at] = values[0] + (self.memory.get(at, 0) if opcode.startswith("red") else 0)
                if opcode != "st.global.u32":
                    self.signs.append(at)
            case "atom.global.add.u32":
                at = self.address(given[0])
                self.registers[to] = self.memory.get(at, 0)
                self.memory[at] = self.memory.get(at, 0) + values[1]
                self.signs.append(at)
            case "mov.u64" | "mov.u32":
                self.registers[to] = values[0]
            case "add.s64" | "add.u32":
                self.registers[to] = values[0] + values[1]
            case "sub.s64":
                self.registers[to] = values[0] - values[1]
            case "setp.lt.u64":
                self.registers[to] = values[0] % 2**64 < values[1]
            case "not.pred":
                self.registers[to] = not values[0]
            case "and.pred":
                self.registers[to] = values[0] and values[1]
            case "or.pred":
                self.registers[to] = values[0] or values[1]
            case _:
                raise AssertionError(opcode)

    def value(self, operand):
        if operand.startswith("["):
            return None
        return self.registers[operand] if operand.startswith("%") else int(operand)

    def address(self, operand):
        base, _, offset = operand.strip("[] ").partition("+")
        return self.registers[base] + int(offset or 0)


registers = st.fixed_dictionaries(
    {f"%a{i}": st.integers(0, 40).map(lambda n: 4096 + 4 * n) for i in range(1, 4)}
    | {f"%r{i}": st.integers(0, 9) for i in (1, 2, 9)}
    | {f"%p{i}": st.booleans() for i in (1, 2)}
)
guards = st.sampled_from(["", "@%p1 ", "@!%p1 ", "@%p2 "])
addresses = st.tuples(st.sampled_from(["%a1", "%a2", "%a3"]), st.sampled_from(["", "+4", "+-8", "+160"])).map("".join)
lines = st.one_of(
    st.tuples(guards, addresses, st.sampled_from(["%r1", "%r2", "7"])).map(
        lambda t: "{}st.global.u32 [{}], {};".format(*t)
    ),
    st.tuples(guards, addresses).map(lambda t: "{}atom.global.add.u32 %r9, [{}], 1;".format(*t)),
    st.tuples(guards, addresses).map(lambda t: "{}red.global.add.u32 [{}], 3;".format(*t)),
    st.tuples(guards, addresses).map(lambda t: "{}st.volatile.global.u32 [{}], 5;".format(*t)),
    st.sampled_from(["add.u32 %r1, %r1, 1;", "add.s64 %a1, %a1, 4;", "mov.u32 %r2, %r9;", "// nothing", ""]),
)


@given(st.lists(lines, max_size=12).map("\n".join), registers)
def test_one_thread_computes_the_same(text, before):
    """Whatever overlaps, and whichever predicates hold."""
    plain, late = Thread(before).run(text), Thread(before).run(postponed(text))
    assert late.memory == plain.memory and late.signs == plain.signs
    assert all(late.registers[r] == value for r, value in plain.registers.items())


@pytest.mark.parametrize(
    "sign", [ATOM, "red.global.add.u32 [%a2], 3;", "st.volatile.global.u32 [%a2], 5;", "@%p1 " + ATOM]
)
@pytest.mark.parametrize("between", ["", "add.u32 %r2, %r2, 1;", "// a comment", "\t.loc\t1 7 3"])
def test_a_store_comes_after_the_sign_that_follows_it(sign, between):
    late = postponed(f"{STORE}\n{between}\n{sign}")
    assert late.index("@%assay_before0 st") < late.index(sign.split()[-2]) < late.index("@%assay_after0 st")


@pytest.mark.parametrize(
    "between",
    [
        "fence.acq_rel.gpu;",
        "membar.gl;",
        "fence.sc.gpu ;",
        "bar.sync \t0;",
        "$L__BB0_2:",
        "bra $L__BB0_2;",
        "@%p1 bra $L__BB0_2;",
        "ld.global.u32 %r2, [%a3];",
        "call.uni (%r2), f, (%r1);",
        "add.u32 %r1, %r1, 1;",
        "add.s64 %a1, %a1, 4;",
        "{",
        "}",
        "mov.u32 %r2, 1; fence.acq_rel.gpu;",
    ],
)
def test_a_store_stays_before_what_orders_it_or_changes_it(between):
    text = f"{STORE}\n{between}\n{ATOM}"
    assert postponed(text) == text


@pytest.mark.parametrize(
    "text",
    [
        f"st.release.gpu.global.u32 [%a1], %r1;\n{ATOM}",
        f"st.volatile.global.u32 [%a1], %r1;\n{ATOM}",
        f"st.shared.u32 [%r1], %r2;\n{ATOM}",
        f"st.param.b32 [param0], %r2;\n{ATOM}",
        f"{STORE}\natom.global.acq_rel.gpu.add.u32 %r9, [%a2], 1;",
        f"{STORE}\natom.global.release.gpu.add.u32 %r9, [%a2], 1;",
        f"{STORE}\natom.shared.add.u32 %r9, [%r2], 1;",
        f"{STORE}\nst.global.u32 [%a2], 1;",
        f"{STORE}\natom.global.add.u32 %r1, [%a2], 1;",
    ],
)
def test_what_is_ordered_or_elsewhere_stays(text):
    assert postponed(text) == text


@has_nvrtc
@pytest.mark.skipif(host.tool("ptxas") is None, reason="no ptxas")
@pytest.mark.parametrize("fenced", [False, True])
def test_a_kernel_without_a_fence_is_assembled_with_its_store_postponed(fenced, tmp_path):
    file = CORPUS / "fence_missing.cu"
    plain = nvrtc.build(file.read_text(), file.name, f"sum<{str(fenced).lower()}>", Target("sm_90a")).ptx.decode()
    late = postponed(plain)
    assert (late != plain) != fenced
    (tmp_path / "k.ptx").write_text(delayed(late))
    subprocess.run([host.tool("ptxas"), "-arch=sm_90a", "k.ptx", "-o", "k.cubin"], cwd=tmp_path, check=True)


@has_nvrtc
@pytest.mark.parametrize("name", NVRTC)
def test_kernels_that_give_no_signs_stay_as_they_are(name):
    assert postponed(by_nvrtc(name)) == by_nvrtc(name)


@pytest.mark.skipif(host.tool("ptxas") is None, reason="no ptxas")
def test_several_stores_with_predicates_and_symbols_are_assembled(tmp_path):
    body = """\
.global .u32 count;
.visible .entry k(.param .u64 x)
{
.reg .b64 %a<3>; .reg .b32 %r<10>; .reg .pred %p<3>;
ld.param.u64 %a1, [x];
mov.u32 %r1, %tid.x;
setp.lt.u32 %p1, %r1, 7;
st.global.u32 [%a1+512], %r1;
@%p1 st.global.v2.u32 [%a1+1024], {%r1, %r1};
@!%p1 st.u32 [%a1+2048], %r1;
@%p1 red.global.add.u32 [count], 1;
ret;
}
"""
    late = postponed(HEAD + body)
    assert late.count("@%assay_after") == 3
    (tmp_path / "k.ptx").write_text(delayed(late))
    subprocess.run([host.tool("ptxas"), "-arch=sm_90", "k.ptx", "-o", "k.cubin"], cwd=tmp_path, check=True)
