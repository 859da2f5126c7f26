"""Suggestions for errors about a kernel whose op is unknown: the user's own ops and files, the likeliest first."""

import contextlib
import shlex
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from pathlib import Path

from assay import provenance
from assay.catalog import library
from assay.catalog.reader import op_names
from assay.errors import AssayError
from assay.settings import did_you_mean

_MOST = 64
"""The most files of a folder that are read."""


def neighbours(file: Path) -> dict[str, list[str]]:
    """Return the ops that the Python files beside a file declare, by the files' shown names. No code is run."""
    found: dict[str, list[str]] = {}
    for beside in sorted(file.resolve().parent.glob("*.py"))[:_MOST]:
        try:
            found[provenance.shown(beside)] = op_names(beside)
        except AssayError:
            continue
    return {name: ops for name, ops in found.items() if ops}


def which_op(file: Path, named: Mapping[str, Iterable[str]], command: str) -> str:
    """Return advice on how to name the op of a bare .cu file. `named`: the ops of the command's own files."""
    own = [f"{home}:{op}" for home, ops in {**neighbours(file), **named}.items() for op in ops]
    own.sort(key=lambda text: -SequenceMatcher(None, file.stem, text.rpartition(":")[2]).ratio())
    likely = max((op for op in library.ops() if op in file.stem), key=len, default="gelu")
    first = [*own, likely][0]
    said = f"{command} {shlex.quote(str(file))} --op {shlex.quote(first)}" if command else f'say op="{first}"'
    others = own[1:4] if own else ["FILE.py:NAME for an op of yours"]
    return f"{said}, or {' or '.join(others)}" if others else said


def which_file(name: str, file: Path, known: Iterable[str], command: str) -> str:
    """Return advice on where the op called `name` may be declared, which no file of the command declares."""
    if name.endswith(".py"):
        declared: list[str] = []
        with contextlib.suppress(AssayError, OSError):
            declared = list(op_names(Path(name)))
        return f"say which op of that file: --op {name}:{declared[0] if declared else 'NAME'}"
    beside = neighbours(file)
    homes = [home for home, ops in beside.items() if name in ops]
    if homes and file.suffix == ".cu":
        return f"{homes[0]} declares it: --op {homes[0]}:{name}"
    if homes:
        together = f"{command} {shlex.quote(str(file))} {shlex.quote(homes[0])}" if command else "name both files"
        return f'{homes[0]} declares it: {together}, or write @kernel("{Path(homes[0]).name}:{name}")'
    hint = did_you_mean(name, [*(op for ops in beside.values() for op in ops), *known])
    if file.suffix == ".cu":
        return f"{hint}Or say which file declares it: --op FILE.py:{name}"
    return f"{hint}Or declare it with @op, in the same file or in one named together with it"
