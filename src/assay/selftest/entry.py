"""One file of the corpus: a wrong kernel, its mended twin, and who must tell them apart."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.catalog.reader import parse
from assay.catalog.select import select
from assay.errors import SourceError, UsageError
from assay.kernel import Kernel
from assay.op import Op

CORPUS = Path(__file__).parent / "corpus"
DETECTORS = (
    "values",
    "nonfinite",
    "unwritten",
    "guard",
    "overread",
    "input",
    "stale",
    "unstable",
    "stream",
    "late",
    "global",
    "seed",
    "distribution",
    "returned",
    "build",
    "exception",
    "launch",
    "exit",
    "crash",
    "timeout",
    "memory",
    "flood",
    "fork",
    "channel",
    "sanitizer",
    "floor",
    "clock",
    "tampered",
    "settings",
    "unfinished",
    "alias",
    "cache",
    "unsteady",
)
VERBS = ("check", "bench")
NEEDS = ("", "gpu", "no gpu", "sanitizer")
RESERVED = ("mutants",)
"""First words of `assay selftest` that mean something else; no entry may be called so."""
_CONSTANTS = {
    "DETECTOR": "",
    "NEEDS": "",
    "WORKLOAD": "",
    "DTYPE": "fp32",
    "SECONDS": 60.0,
    "MEMORY": 0.0,
    "TOOL": "memcheck",
    "VERB": "check",
}


@dataclass(frozen=True)
class Entry:
    name: str
    file: Path
    summary: str
    """What is wrong and how it happens to people."""
    detector: str
    """Who must catch it; `values or nonfinite` where the values decide which of them sees it first."""
    needs: str
    workload: str
    """The one to try; empty: fuzzed ones."""
    dtype: str
    seconds: float
    """The wrong kernel's limit for one workload."""
    memory: float
    """The wrong kernel's limit in GiB; 0: as usual."""
    tool: str
    """Of compute-sanitizer, where that is the detector."""
    verb: str = "check"
    """Which verb must catch it: `bench` where the result is right and the time is not."""

    def kernels(self) -> dict[str, tuple[Kernel, Op]]:
        """`wrong` and `mended`, each with its op."""
        found = {kernel.address.variant: (kernel, op) for kernel, op in select([self.file])}
        if set(found) != {"wrong", "mended"}:
            raise _incomplete(self.file, 'two kernels, variant="wrong" and variant="mended"')
        return {which: found[which] for which in ("wrong", "mended")}


def entries(names: Iterable[str] | None = None, folder: Path = CORPUS) -> list[Entry]:
    """The entries named, or all."""
    wanted = list(names or ())
    files = {f.stem: f for f in sorted(folder.glob("*.py")) if f.stem != "__init__"}
    for name in RESERVED:
        if name in files:
            raise SourceError(f"`assay selftest {name}` means something else", where=str(files[name]), fix="rename it")
    if unknown := [n for n in wanted if n not in files]:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], files, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(files)}"
        raise UsageError(f"the selftest has no entry called '{unknown[0]}'", fix=hint)
    return [read(files[n]) for n in wanted or files]


def read(file: Path) -> Entry:
    """An entry from its docstring and its constants."""
    tree = parse(file)
    told: dict[str, Any] = dict(_CONSTANTS)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in told:
            told[node.targets[0].id] = ast.literal_eval(node.value)
    summary = " ".join((ast.get_docstring(tree) or "").split())
    if not summary:
        raise _incomplete(file, "a docstring that says what is wrong")
    if not told["DETECTOR"] or set(told["DETECTOR"].split(" or ")) - set(DETECTORS):
        raise _incomplete(file, f"DETECTOR, one of: {', '.join(DETECTORS)}")
    if told["NEEDS"] not in NEEDS:
        raise _incomplete(file, 'NEEDS = "gpu", "no gpu" or "sanitizer", or none')
    if told["DETECTOR"] == "sanitizer" and not (told["WORKLOAD"] and told["NEEDS"] == "sanitizer"):
        raise _incomplete(file, 'NEEDS = "sanitizer" and a WORKLOAD')
    if told["VERB"] not in VERBS or (told["VERB"] == "bench" and not told["WORKLOAD"]):
        raise _incomplete(file, 'VERB = "check", or "bench" and a WORKLOAD')
    return Entry(
        file.stem,
        file,
        summary,
        told["DETECTOR"],
        told["NEEDS"],
        told["WORKLOAD"],
        told["DTYPE"],
        float(told["SECONDS"]),
        float(told["MEMORY"]),
        told["TOOL"],
        told["VERB"],
    )


def _incomplete(file: Path, lacks: str) -> SourceError:
    return SourceError("this entry of the selftest is incomplete", where=str(file), fix=f"give it {lacks}")
