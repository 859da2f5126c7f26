"""Turns a stepwise compilation into a record."""

from __future__ import annotations

from typing import Any

from assay import provenance
from assay.inspect.phases.step import Build, File
from assay.record import Record, Status


def record(build: Build, run: str) -> Record:
    total = sum(s.seconds or 0 for s in build.steps)
    steps = [
        {
            "name": s.name,
            "command": list(s.command),
            "environment": s.environment,
            "seconds": s.seconds,
            "reads": [_file(f) for f in s.reads],
            "writes": [_file(f) for f in s.writes],
            "said": s.output,
        }
        for s in build.steps
    ]
    return Record(
        "inspect",
        build.file.name,
        "",
        Status.FAIL if build.error else Status.COMPILED,
        str(build.error) if build.error else f"{len(steps)} steps, {total:.2f} s",
        run,
        {"target": str(build.target), "folder": str(build.folder), "steps": steps},
        replay=f"assay inspect phases {build.file} --target {build.target}",
        source={"file": str(build.file)},
        provenance=provenance.provenance(0),
        seconds=total,
    )


def _file(file: File) -> dict[str, Any]:
    return {"path": file.path, "bytes": file.size}
