"""The variants of a model: for every language, its kernels for the model's sites. Sites of other ops are left as they
are, so each variant computes the same function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from assay.backends import Level, here
from assay.catalog import library
from assay.catalog.select import Choice, select
from assay.errors import UsageError
from assay.kernel import BACKENDS
from assay.models.operators.choice import choose
from assay.models.packed.packing import kernel_of
from assay.models.swap import replacement
from assay.models.swap.rules import FUSIONS

BASELINE = "torch"
"""The variant in which nothing is swapped."""
OWN = "swap"
"""The variant given by --swap."""
_ON_REQUEST = ("inductor",)
"""Languages used only on request. inductor would compile each op separately, while the compiled arm compiles the whole
model, as inductor is meant to be used."""
_BOTH = ("torch", "inductor")
"""Languages whose kernels run on either device."""


@dataclass(frozen=True)
class Variant:
    name: str
    rules: Mapping[str, str] = field(default_factory=dict)
    """Rules for `assay.swap`; empty: nothing is swapped."""
    mode: str = "native"
    """Mode of its process (assay.worker.process.MODES)."""
    cannot: str = ""
    """Why it cannot run here."""

    @property
    def interpreted(self) -> bool:
        """Whether it runs in an interpreter or a simulator, so that only its results are meaningful, not its times."""
        return self.mode != "native"


def variants(ops: Iterable[str], device: str, wanted: Iterable[str], own: Mapping[str, str]) -> list[Variant]:
    """Return the requested variants, the baseline first. `ops`: the ops of the model's sites; a pair that can be fused
    counts as one."""
    asked = [n for n in wanted if n != "all"]
    every = "all" in wanted or (not asked and not own)
    rules = {BASELINE: {}, **({OWN: dict(own)} if own else {}), **_rules(list(ops))}
    for name in asked:
        if name not in rules:
            near = get_close_matches(name, rules, n=2, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            language = name.partition(":")[0].partition("+")[0]
            what = f"no variant called '{name}'"
            if language in BACKENDS and not any(n.startswith(language) for n in rules):
                what = f"nothing that this model calls has a kernel in {language}"
            raise UsageError(what, fix=f"{hint}the model has: {', '.join(rules)}")
    usual = [n for n in rules if n.partition(":")[0].partition("+")[0] not in _ON_REQUEST]
    chosen = {*asked, *([OWN] if own else []), *([BASELINE] if own and not asked else []), *(usual if every else [])}
    return [_placed(name, rules[name], device) for name in rules if name in chosen]


def _rules(ops: list[str]) -> dict[str, dict[str, str]]:
    """Return rules by variant: `triton`; `cuda:inline_ptx` if a kernel has another design; `triton+fused` if pairs can
    be one kernel."""
    rules: dict[str, dict[str, str]] = {}
    written = [k for k in library.kernels() if k.address.backend != BASELINE]
    for language in (b for b in BACKENDS if b != BASELINE):
        kernels = {(k.address.op, k.address.variant): k.name for k in written if k.address.backend == language}
        plain = {op: name for op in ops if (name := kernels.get((FUSIONS.get(op, op), "")))}
        base = {op: name for op, name in plain.items() if op not in FUSIONS}
        rules |= {language: base} if base else {}
        for design in sorted({design for op, design in kernels if design and op in ops}):
            other = {op: name for op in ops if op not in FUSIONS and (name := kernels.get((op, design)))}
            rules[f"{language}:{design}"] = base | other
        rules |= {f"{language}+fused": plain} if len(plain) > len(base) else {}
    return rules


def named(rules: Mapping[str, str], device: str) -> Iterator[tuple[str, Choice]]:
    """Yield the kernels that the rules select, each with the text that names it. If a rule names an op, this is the
    best kernel that runs; if a language, the kernel of the key's op in that language. A format without a kernel, for
    which PyTorch computes, yields none."""
    for key, given in rules.items():
        op, value = key.rpartition(":")[2], kernel_of(given)
        if value in library.ops() or value in BACKENDS:
            choice = choose(value, op if value in library.ops() else FUSIONS.get(op, op), device, key)
            yield choice[0].name, choice
        elif replacement.find(value) is None:
            yield from ((value, choice) for choice in select([value], FUSIONS.get(op, op)))


def _placed(name: str, rules: Mapping[str, str], device: str) -> Variant:
    """Return the variant with the mode of process it needs, or with the reason why it cannot run."""
    modes: set[str] = set()
    for _, (kernel, _) in named(rules, device):
        available = here(kernel)
        if available.level not in (Level.RUN, Level.INTERPRET):
            return Variant(name, rules, cannot=f"{kernel}: {available.reason}; {available.fix}")
        if kernel.address.backend not in _BOTH and available.device != device:
            return Variant(name, rules, cannot=f"{kernel} runs on {available.device}, the model is on {device}")
        modes |= {available.mode} - {"native"}
    if len(modes) > 1:
        return Variant(name, rules, cannot=f"{' and '.join(sorted(modes))} do not run in one process")
    return Variant(name, rules, next(iter(modes), "native"))
