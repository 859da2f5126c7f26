"""Exports tuned values for other programs: as JSON, as `triton.Config` in Python, or as a C header of constants."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.record import Record
from assay.tune.evidence import Choice, TuneEvidence

_LAUNCH = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Parameters of `triton.Config` itself; all others are constants of the kernel."""


def exported(records: Sequence[Record], file: Path) -> str:
    """Return the choices among the records in the format of the file's suffix. Raise UsageError for an unknown
    suffix."""
    write = writer(file)
    return write([(r, choice) for r in records if (choice := TuneEvidence.of(r).choice) is not None])


def writer(file: Path) -> Callable[[Sequence[tuple[Record, Choice]]], str]:
    """Return the function that writes files with this suffix."""
    if file.suffix not in _WRITERS:
        raise UsageError(f"--export {file}: unknown kind of file", fix=f"a name that ends in {', '.join(_WRITERS)}")
    return _WRITERS[file.suffix]


def _json(choices: Sequence[tuple[Record, Choice]]) -> str:
    rows = [
        {
            "kernel": record.kernel,
            "workload": record.workload,
            "shape_class": choice.shape_class,
            "parameters": choice.winner,
            "seconds": choice.median,
            "measured": choice.median is not None,
            "device": _device(record),
            "run": record.run,
            "source": record.source.get("hash", ""),
        }
        for record, choice in choices
    ]
    return json.dumps(rows, indent=1) + "\n"


def _triton(choices: Sequence[tuple[Record, Choice]]) -> str:
    lines = ['"""Configurations chosen by `assay tune`, by kernel and shape class."""', "", "import triton", ""]
    lines += ["CONFIGS = {"]
    for record, choice in choices:
        constants = {n: v for n, v in choice.winner.items() if n not in _LAUNCH}
        launch = "".join(f", {n}={v!r}" for n, v in choice.winner.items() if n in _LAUNCH)
        lines.append(f"    # {_origin(record, choice)}")
        lines.append(f'    ("{record.kernel}", "{choice.shape_class}"): triton.Config({constants!r}{launch}),')
    return "\n".join([*lines, "}", ""])


def _header(choices: Sequence[tuple[Record, Choice]]) -> str:
    lines = ["// Constants chosen by `assay tune`.", "#pragma once", ""]
    count = Counter(record.kernel for record, _ in choices)
    for record, choice in choices:
        lines.append(f"// {record.kernel} on {choice.shape_class}: {_origin(record, choice)}")
        where = f"_{record.workload}" if count[record.kernel] > 1 else ""
        prefix = re.sub(r"\W+", "_", f"{record.kernel}{where}").upper()
        lines += [f"#define {prefix}_{name.upper()} {_constant(value)}" for name, value in choice.winner.items()]
        lines.append("")
    return "\n".join([*lines, ""])


def _constant(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _origin(record: Record, choice: Choice) -> str:
    how = f"{choice.median * 1e6:.4g} us on" if choice.median else "not measured, ranked by its code for"
    return f"{how} {_device(record)}, run {record.run}"


def _device(record: Record) -> str:
    """Return the device that was measured or, if nothing ran, the target."""
    evidence = TuneEvidence.of(record)
    return record.device if evidence.device else evidence.target


_WRITERS: dict[str, Callable[[Sequence[tuple[Record, Choice]]], str]] = {
    ".json": _json,
    ".py": _triton,
    ".h": _header,
}
