"""The difference of two kernels: planted changes in real machine code are found, those and no others."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay import host
from assay.backends import nvrtc
from assay.inspect.diff import Kind, described, difference, shape
from assay.inspect.row import Row
from assay.inspect.summary import summary
from assay.inspect.table import Table, table
from assay.isa.cubin import functions
from assay.target import Target

ROOT = Path(__file__).parents[2] / "src" / "assay" / "library"
pytestmark = pytest.mark.skipif(
    not host.has("cuda.bindings") or host.tool("nvdisasm") is None, reason="needs NVRTC and nvdisasm"
)


@cache
def built(op: str, name: str, target: str = "sm_90") -> tuple[Table, dict]:
    file = ROOT / op / "kernel.cu"
    a = nvrtc.build(file.read_text(), str(file), name, Target(target), (f"-I{file.parent}",))
    found = table(a.cubin, a.symbol, a.ptx.decode())
    function = next(f for f in functions(a.cubin) if f.symbol == a.symbol)
    return found, summary(found, function, a.target, 256, 0, None)


def gelu() -> list[Row]:
    return list(built("gelu", "gelu<float, 4, Erf>")[0].rows)


def kinds(old, new) -> dict[str, int]:
    return {k: n for k, n in difference(old, new).counts.items() if k != "same"}


def test_a_kernel_is_the_same_as_itself():
    found = difference(gelu(), gelu())
    assert found.equal and set(found.counts) == {"same"} and found.counts["same"] == len(gelu())


def rare(rows: list[Row]) -> list[int]:
    """Places of instructions whose shape stands nowhere else: a change there is unambiguous."""
    shapes = [shape(r) for r in rows]
    return [i for i, s in enumerate(shapes) if shapes.count(s) == 1 and rows[i].opcode != "EXIT"]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_one_removed_or_added_instruction_is_found_alone(rng):
    rows = gelu()
    at = rng.choice(rare(rows))
    without = rows[:at] + rows[at + 1 :]
    assert kinds(rows, without) == {"removed": 1} and kinds(without, rows) == {"added": 1}
    (pair,) = [p for p in difference(rows, without).pairs if p.kind is Kind.REMOVED]
    assert pair.old == rows[at]
    (pair,) = [p for p in difference(without, rows).pairs if p.kind is Kind.ADDED]
    assert pair.new == rows[at]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_a_moved_instruction_is_moved_not_gone_and_come(rng):
    rows = gelu()
    at = rng.choice(rare(rows))
    to = (at + rng.randrange(4, len(rows) - 8)) % (len(rows) - 1)
    rest = rows[:at] + rows[at + 1 :]
    found = kinds(rows, [*rest[:to], rows[at], *rest[to:]])
    assert found.get("moved", 0) >= 1 and "removed" not in found and "added" not in found


def test_registers_renamed_throughout_are_no_change():
    """By eight, so that registers that belong together stay so."""
    rows = gelu()

    def rename(text: str) -> str:
        return re.sub(r"\bR(\d+)\b", lambda m: f"R{int(m[1]) + 8}", text)

    new = [replace(r, text=rename(r.text), operands=tuple(map(rename, r.operands))) for r in rows]
    found = difference(rows, new)
    assert found.equal and found.counts["renamed"] > len(rows) / 2


def test_a_value_taken_from_another_register_is_a_change():
    rows = gelu()
    at = next(i for i, r in enumerate(rows) if r.opcode == "FFMA" and i > 40 and "R" in r.operands[1])
    other = "R250"
    operands = (*rows[at].operands[:1], other, *rows[at].operands[2:])
    changed = replace(rows[at], operands=operands, text=rows[at].text.replace(rows[at].operands[1], other, 1))
    if changed.operands[0] == rows[at].operands[1]:
        changed = replace(changed, text=f"FFMA {', '.join(operands)}")
    found = difference(rows, [*rows[:at], changed, *rows[at + 1 :]])
    assert [p.old for p in found.pairs if p.kind is Kind.REWIRED] == [rows[at]]
    assert set(found.counts) == {"same", "rewired"}


@pytest.mark.parametrize("what", ["immediate", "control"])
def test_immediates_and_control_codes(what):
    rows = gelu()
    at = next(i for i in rare(rows) if re.search(r", 0x[0-9a-f]+", rows[i].text))
    if what == "immediate":
        changed = replace(rows[at], text=re.sub(r", 0x[0-9a-f]+", ", 0x77", rows[at].text, count=1))
    else:
        changed = replace(rows[at], stall=rows[at].stall + 1)
    new = [*rows[:at], changed, *rows[at + 1 :]]
    assert kinds(rows, new) == ({"changed": 1} if what == "immediate" else {"rescheduled": 1})
    assert difference(rows, new).equal == (what == "control")


def test_what_changed_is_told_in_words_and_figures():
    (old, before), (new, after) = built("gelu", "gelu<float, 4, Erf>"), built("gelu", "gelu<float, 1, Erf>")
    text = described(difference(old.rows, new.rows), before, after, ("vectors", "scalars"))
    assert f"scalars has {len(new.rows)} instructions where vectors has {len(old.rows)}" in text
    assert "Bits of each global load: " in text and "128 before" in text
    same = described(difference(old.rows, old.rows), before, before, ("a", "b"))
    assert same == f"a and b are the same {len(old.rows)} instructions, to the last bit of their control codes."
