"""The process that runs trials. It stays alive between them, so that torch, the data and the base model are loaded
once. Its parent kills it when a trial takes too long or too much memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.search import space
from assay.search.setup import Setup
from assay.search.subjects.subject import Infeasible

if TYPE_CHECKING:
    from assay.search.subjects.subject import Subject
    from assay.worker.fresh import Tick

_here: dict[str, tuple[Setup, Subject]] = {}
"""The subject of the study of the last question."""


def answer(question: dict[str, Any], tick: Tick) -> dict[str, Any]:
    subject = _subject(Setup.read(question["setup"]), tick)
    match question["do"]:
        case "space":
            return {"space": space.plain(subject.space()), "sizes": subject.sizes()}
        case "alive":
            from assay.search.alive import dead

            return {"dead": [vars(one) for one in dead(space.read(question["space"]), subject.built, tick)]}
        case "control":
            tick("the control")
            return subject.control(question.get("test", False)).plain()
        case "judge":
            file = Path(question["file"]) if question.get("file") else None
            try:
                return subject.judged(question["point"], question.get("test", False), file).plain()
            except Infeasible as problem:
                return {"infeasible": problem.what}
    raise UsageError(f"'{question['do']}' is nothing that can be asked", fix="ask for space, alive, control or judge")


def _subject(setup: Setup, tick: Tick) -> Subject:
    if "last" not in _here or _here["last"][0] != setup:
        _here.clear()
        _here["last"] = setup, _made(setup, tick)
    return _here["last"][1]


def _made(setup: Setup, tick: Tick) -> Subject:
    """Create the subject of a study. Each kind is imported on demand."""
    if setup.kind == "architecture":
        from assay.search.subjects.architecture import Architecture

        return Architecture(setup, tick)
    if setup.kind == "sensitivity":
        from assay.search.subjects.sensitivity import Sensitivity

        return Sensitivity(setup, tick)
    from assay.search.subjects.precision import Precision

    return Precision(setup, tick)


if __name__ == "__main__":
    from assay.worker.fresh import serve

    serve(answer)
