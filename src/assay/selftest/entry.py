"""One file of the corpus: a wrong kernel, its fixed twin, and the detector that must distinguish them."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.catalog.select import select
from assay.catalog.source import parse
from assay.errors import SourceError, UsageError
from assay.kernel import Kernel
from assay.op import Op
from assay.settings import did_you_mean

CORPUS = Path(__file__).parent / "corpus"
DETECTORS = (
    "values",
    "nonfinite",
    "unwritten",
    "guard",
    "overread",
    "input",
    "stale",
    "state",
    "unstable",
    "race",
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
    "early",
    "unfinished",
    "alias",
    "cache",
    "unsteady",
    "slower",
)
VERBS = ("check", "bench", "tune")
NEEDS = ("", "gpu", "no gpu", "sanitizer")
RESERVED = ("mutants",)
"""Words with another meaning after `assay selftest`; no entry may have such a name."""
_CONSTANTS = {
    "DETECTOR": "",
    "NEEDS": "",
    "WORKLOAD": "",
    "DTYPE": "fp32",
    "SECONDS": 60.0,
    "MEMORY": 0.0,
    "TOOL": "memcheck",
    "VERB": "check",
    "SLOWER": None,
}


@dataclass(frozen=True)
class CorpusEntry:
    name: str
    file: Path
    summary: str
    """What is wrong, and how this mistake happens in practice."""
    detector: str
    """The detector that must catch it; `values or nonfinite` if the values decide which of them catches it first."""
    needs: str
    workload: str
    """The workload to try; if empty, those that `check` chooses."""
    dtype: str
    seconds: float
    """The wrong kernel's time limit in seconds for one workload."""
    memory: float
    """The wrong kernel's memory limit in GiB; 0 for the usual one."""
    tool: str
    """The tool of compute-sanitizer to use if the detector is `sanitizer`."""
    verb: str = "check"
    """The verb that must catch it: `bench` if the result is right and the time is not, `tune` if one of several
    configurations is wrong or slower than it seems."""
    slower: dict[str, Any] | None = None
    """For `tune`, the configuration of the wrong kernel that must lose if all of them are right."""

    def kernels(self) -> dict[str, tuple[Kernel, Op]]:
        """Return the kernels `wrong` and `fixed`, each with its op."""
        by_variant = {kernel.address.variant: (kernel, op) for kernel, op in select([self.file])}
        if set(by_variant) != {"wrong", "fixed"}:
            raise _incomplete(self.file, 'two kernels, variant="wrong" and variant="fixed"')
        return {which: by_variant[which] for which in ("wrong", "fixed")}


def entries(names: Iterable[str] | None = None, folder: Path = CORPUS) -> list[CorpusEntry]:
    """Return the named entries, or all."""
    wanted = list(names or ())
    files = {f.stem: f for f in sorted(folder.glob("*.py")) if f.stem != "__init__"}
    if reserved := [name for name in RESERVED if name in files]:
        what = f"`assay selftest {reserved[0]}` has another meaning"
        raise SourceError(what, where=str(files[reserved[0]]), fix="rename it")
    if unknown := [n for n in wanted if n not in files]:
        hint = did_you_mean(unknown[0], files).strip() or f"there are: {', '.join(files)}"
        raise UsageError(f"the selftest has no entry called '{unknown[0]}'", fix=hint)
    return [read(files[n]) for n in wanted or files]


def read(file: Path) -> CorpusEntry:
    """Return the entry that a file's docstring and constants declare."""
    tree = parse(file)
    constants: dict[str, Any] = dict(_CONSTANTS)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in constants:
            constants[node.targets[0].id] = ast.literal_eval(node.value)
    summary = " ".join((ast.get_docstring(tree) or "").split())
    if not summary:
        raise _incomplete(file, "a docstring that says what is wrong")
    if not constants["DETECTOR"] or set(constants["DETECTOR"].split(" or ")) - set(DETECTORS):
        raise _incomplete(file, f"DETECTOR, one of: {', '.join(DETECTORS)}")
    if constants["NEEDS"] not in NEEDS:
        raise _incomplete(file, 'NEEDS = "gpu", "no gpu" or "sanitizer", or none')
    if constants["DETECTOR"] == "sanitizer" and not (constants["WORKLOAD"] and constants["NEEDS"] == "sanitizer"):
        raise _incomplete(file, 'NEEDS = "sanitizer" and a WORKLOAD')
    if constants["VERB"] not in VERBS or (constants["VERB"] != "check" and not constants["WORKLOAD"]):
        raise _incomplete(file, 'VERB = "check", or "bench" or "tune" and a WORKLOAD')
    if (constants["DETECTOR"] == "slower") != bool(constants["SLOWER"]):
        raise _incomplete(file, 'DETECTOR = "slower" together with SLOWER, the configuration that must lose')
    return CorpusEntry(
        file.stem,
        file,
        summary,
        constants["DETECTOR"],
        constants["NEEDS"],
        constants["WORKLOAD"],
        constants["DTYPE"],
        float(constants["SECONDS"]),
        float(constants["MEMORY"]),
        constants["TOOL"],
        constants["VERB"],
        constants["SLOWER"],
    )


def _incomplete(file: Path, lacks: str) -> SourceError:
    return SourceError("this entry of the selftest is incomplete", where=str(file), fix=f"give it {lacks}")
