"""Explains a finding by old contents of the output, the answer to other values, unmapped memory beside the tensors, or
the circumstances of the call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from assay.catalog.reader import LIBRARY
from assay.check import leftovers, overflow, runs, special_inputs
from assay.check.buffers import same
from assay.check.case import Case
from assay.check.judge import Finding
from assay.check.outcome import Outcome
from assay.check.runs import Done, Run
from assay.lazy import torch
from assay.workload import Workload

_ILLEGAL = re.compile("illegal memory access|illegal_?address", re.IGNORECASE)
"""The error of CUDA, CuPy and Numba for an access to an unmapped address."""
Again = Callable[[Run], Done | Outcome]
"""Calls the kernel once more."""


def explained(finding: Finding, cases: list[Case], index: int, done: list[Done], again: Again) -> Finding:
    """Return a finding that names the cause, a stale or an unwritten output, or else the finding itself. The kernel is
    called once more with `again`."""
    call = next(d for d in done if d.run.values == index)
    if call.run.held != "other":  # with "other", the outputs held the old result before the call
        for earlier in done[: done.index(call)]:
            if earlier.run.place == call.run.place and (stale := _stale(cases, index, call, earlier)):
                return stale
    for name, held in call.held.items():
        right = cases[index].right[name]
        if right.dtype == torch.bool:
            continue  # a wrong boolean equals all contents that differ from the right one
        wrong = leftovers.kept(call.result[name], held) & ~leftovers.kept(right, held)
        if not bool(wrong.any()) or not cases[index].judge({name: call.result[name]}).finding:
            continue
        fixed = leftovers.replaced(call.result[name], right, wrong)
        if cases[index].judge({name: fixed}).finding:  # the cause is elsewhere, and these are equal by chance
            continue
        if _kept_again(name, wrong, call, again):
            count = f"{int(wrong.sum())} of {wrong.numel()}"
            what = f"{count} elements of `{name}` kept what stood there before the call "
            kind = "number" if call.run.held == "nan" and not held.is_floating_point() else call.run.held
            what += f"({leftovers.KINDS[kind]}), first at {int(wrong.nonzero()[0])}"
            return Finding("unwritten", what)
    return finding


def _kept_again(name: str, which: torch.Tensor, call: Done, again: Again) -> bool:
    """True if most of these elements keep other contents too: a wrong result may equal the old contents by chance. Most
    suffice, since a kernel may write where random bits happen to be a NaN."""
    if call.run.held in ("zeros", "other"):  # these contents would be the same again
        return True
    run = call.run if call.held[name].is_floating_point() else replace(call.run, held="random")
    for _ in range(2):
        called = again(run)
        if isinstance(called, Outcome):
            return False
        if 2 * int(leftovers.kept(called.result[name], called.held[name])[which].sum()) < int(which.sum()):
            return False
    return True


def _stale(cases: list[Case], index: int, call: Done, earlier: Done) -> Finding | None:
    """Return a finding if a wrong output is, bit for bit, an earlier call's output for other values."""
    if earlier.run.values == index:
        return None
    for name, value in call.result.items():
        alone = {name: value}
        if same(alone, {name: earlier.result[name]}) and cases[index].judge(alone).finding:
            which = "for the first values" if earlier.run.values == runs.USUAL else "for earlier values"
            return Finding("stale", f"{cases[index].change}, and `{name}` is still the result {which}")
    return None


def with_inputs(finding: Finding, inputs: Mapping[str, torch.Tensor]) -> Finding:
    """Return the finding of a wrong value with all inputs, if they are few."""
    if finding.detector not in ("values", "nonfinite") or not (words := special_inputs.written(inputs)):
        return finding
    return replace(finding, details=(f"  input   {words}", *finding.details))


def beside_pytorch(finding: Finding, wrong: str) -> Finding:
    """Return the finding with the note that PyTorch is wrong on this workload too, and what to do about it."""
    what, *steps = finding.what.split("\n  → ")
    steps = [*filter(None, [overflow.advice(wrong)]), *steps]
    return replace(finding, what="\n  → ".join([f"{what}; PyTorch itself is wrong with {wrong}", *steps]))


def fenced_off(outcome: Outcome, fence: str) -> Outcome:
    """Explain a launch that fails because memory beside the tensors is unmapped: it accesses memory outside them."""
    finding = outcome.finding
    if not fence or finding is None or not _ILLEGAL.search(finding.what):
        return outcome
    what = f"it reads or writes outside its tensors: with no memory {fence} them the launch fails "
    what += f"({finding.what})\n  → give that access a mask or a condition"
    return replace(outcome, finding=Finding("overread", what))


def empty(outcome: Outcome, workload: Workload) -> Outcome:
    """Say what to do about a division by zero on a workload with an axis of size zero."""
    finding, axes = outcome.finding, [axis for axis, size in workload.axes if size == 0]
    if finding is None or outcome.detail.get("type") != "ZeroDivisionError" or not axes or "→" in finding.what:
        return outcome
    which = " or ".join(axes)
    what = f"{finding.what}\n  → return early where {which} is 0"
    if LIBRARY not in Path(workload.op.source).parents:
        what += f"; if empty tensors are not in the op's contract, declare {which} as Axis(min=1)"
    return replace(outcome, finding=replace(finding, what=what))


def only_there(one: Run, outcome: Outcome) -> Outcome:
    """Say in the finding how the call that raised differed from those before."""
    finding = outcome.finding
    if not one.circumstances or finding is None:
        return outcome
    return replace(outcome, finding=replace(finding, what=f"{one.circumstances}: {finding.what}"))


def circumstances(one: Run, usual: Case, again: Again) -> Run:
    """Return those circumstances of a call, wrong on the usual values, that matter: the thread alone, or all others."""
    if not one.thread:
        return one
    same_thread = replace(one, thread=False)
    called = again(same_thread)
    if isinstance(called, Outcome) or usual.judge(called.result).finding:
        return same_thread
    return Run(one.values, thread=True)


def differs(one: Run, finding: Finding) -> Finding:
    """Return the finding for a result that is right in one call and wrong in this one."""
    where = ", ".join(filter(None, ["at another address" if one.place else "", one.circumstances]))
    return Finding("unstable", f"the same values {where} gave a wrong result: {finding.what}")
