"""The cause of a wrong result that is an old content of the output, or the answer to other values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from assay.check import leftovers, runs
from assay.check.buffers import same
from assay.check.case import Case
from assay.check.judge import Finding
from assay.check.outcome import Outcome
from assay.check.runs import Done, Run
from assay.lazy import torch


def explained(
    finding: Finding, cases: list[Case], index: int, done: list[Done], again: Callable[[Run], Done | Outcome]
) -> Finding:
    """The finding, with the cause if it is one of these. `again` calls the kernel once more."""
    call = next(d for d in done if d.run.values == index)
    if call.run.held != "other":  # with "other", the outputs held the old result before the call
        for earlier in done[: done.index(call)]:
            if earlier.run.place == call.run.place and (stale := _stale(cases, index, call, earlier)):
                return stale
    for name, held in call.held.items():
        right = cases[index].right[name]
        wrong = leftovers.kept(call.result[name], held) & ~leftovers.kept(right, held)
        if not bool(wrong.any()) or not cases[index].judge({name: call.result[name]}).finding:
            continue
        mended = leftovers.replaced(call.result[name], right, wrong)
        if cases[index].judge({name: mended}).finding:  # the cause is elsewhere, and these are alike by chance
            continue
        if _kept_again(name, wrong, call, again):
            count = f"{int(wrong.sum())} of {wrong.numel()}"
            what = f"{count} elements of `{name}` kept what stood there before the call "
            kind = "number" if call.run.held == "nan" and not held.is_floating_point() else call.run.held
            what += f"({leftovers.KINDS[kind]}), first at {int(wrong.nonzero()[0])}"
            return Finding("unwritten", what)
    return finding


def _kept_again(name: str, which: torch.Tensor, call: Done, again: Callable[[Run], Done | Outcome]) -> bool:
    """Whether most of these elements keep other leftovers too: a wrong result may equal the old content by chance. Not
    all of them, since a kernel may write where random bits happen to be a NaN."""
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
    """A finding for a wrong output that is, bit for bit, an earlier call's output for other values."""
    if earlier.run.values == index:
        return None
    for name, value in call.result.items():
        alone = {name: value}
        if same(alone, {name: earlier.result[name]}) and cases[index].judge(alone).finding:
            which = "for the first values" if earlier.run.values == runs.USUAL else "for earlier values"
            return Finding("stale", f"{cases[index].change}, and `{name}` is still the result {which}")
    return None
