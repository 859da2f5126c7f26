"""Sorts what a command names into what can be judged and what is refused, before anything runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli import session

if TYPE_CHECKING:
    from assay.catalog.select import Choice
    from assay.errors import AssayError
    from assay.kernel import Kernel


def chosen(what: Iterable[str], options: Any, *, whole_library: bool = False) -> list[Choice]:
    """Return the kernels to judge. An error in one of those named is printed at the end and does not affect the others;
    if none is left, the command ends with exit code 2."""
    from assay.catalog.select import everything, gather
    from assay.dtype import dtype
    from assay.errors import UsageError
    from assay.kernel import BACKENDS

    if unknown := [b for b in options.backends if b not in BACKENDS]:
        raise UsageError(f"--backend {unknown[0]}: no such backend", fix=f"one of: {', '.join(BACKENDS)}")
    wanted = [dtype(d).name for d in options.dtypes]
    named = list(what)
    if named or not whole_library:
        selection = gather(named, options.op, session.command)
        choices, refused = selection.choices, selection.refused
    else:
        choices, refused = everything(), []
    if options.backends:
        left = [c for c in choices if c[0].address.backend in options.backends]
        if choices and not left:
            have = dict.fromkeys(c[0].address.backend for c in choices)
            refused.append(
                UsageError(
                    f"none of these kernels is in {' or '.join(options.backends)}", fix=f"they are in {', '.join(have)}"
                )
            )
        choices = left
    if options.workload:
        choices = _apart(choices, refused, lambda choice: _workload(options.workload, wanted, choice))
    elif wanted:
        choices = _declared(choices, wanted, refused)
    choices = _evaluated(with_known_gates(choices, refused), refused)
    session.refuse(refused)
    if not choices:
        sys.exit(session.WRONG_USE)
    return choices


def shared(kernels: Iterable[Kernel]) -> set[str]:
    """Return the addresses that kernels of several files have."""
    count = Counter(k.name for k in {k.identity: k for k in kernels}.values())
    return {name for name, number in count.items() if number > 1}


def with_known_gates(choices: list[Choice], refused: list[AssayError]) -> list[Choice]:
    """Return the choices without kernels whose `expects=` names an unknown gate; these problems go to `refused`."""
    from assay.inspect.gates import refuse_unknown_gates

    return _apart(choices, refused, lambda choice: refuse_unknown_gates(choice[0]))


def _evaluated(choices: list[Choice], refused: list[AssayError]) -> list[Choice]:
    """Return the choices without kernels of users' ops whose reference fails: there is nothing to compare them with."""
    from assay.backends import Level, here
    from assay.catalog import executed, library
    from assay.errors import AssayError, SourceError

    own = {
        (op.name, op.source): op
        for kernel, op in choices
        if library.ROOT not in Path(op.source).parents and here(kernel).level in (Level.RUN, Level.INTERPRET)
    }
    if not own:
        return choices
    import torch  # noqa: F401  (before the clock starts: half an import of it cannot be repeated)

    from assay.check.reference import verify_reference

    unsound = set()
    for key, op in own.items():
        try:
            with executed.bounded(executed.PATIENCE):
                verify_reference(op)
        except executed.TooLong:
            what = f"op {op.name}: its reference is not done after {executed.PATIENCE:g} s on a few elements"
            refused.append(SourceError(what, where=op.source, fix="does it end for every size?"))
            unsound.add(key)
        except AssayError as problem:
            refused.append(problem)
            unsound.add(key)
    return [(kernel, op) for kernel, op in choices if (op.name, op.source) not in unsound]


def _apart(choices: list[Choice], refused: list[AssayError], verify: Callable[[Choice], None]) -> list[Choice]:
    """Return the choices that `verify` accepts; the problems of the others go to `refused`."""
    from assay.errors import AssayError

    left = []
    for choice in choices:
        try:
            verify(choice)
            left.append(choice)
        except AssayError as problem:
            refused.append(problem)
    return left


def _workload(text: str, wanted: list[str], choice: Choice) -> None:
    from assay.catalog.asked import asked
    from assay.check.past_32_bits import in_memory
    from assay.errors import UsageError

    kernel, op = choice
    number = asked(text, op, partial(in_memory, kernel)).dtype.name
    if wanted and number not in wanted:
        raise UsageError(
            f"--workload {text} is in {number}, --dtype says {','.join(wanted)}", fix="leave one of them out"
        )


def _declared(choices: list[Choice], wanted: list[str], refused: list[AssayError]) -> list[Choice]:
    """Return the kernels whose op is declared for a wanted dtype. If some of several ops lack it, a message says so,
    but that is no error, since one --dtype is given for all of them."""
    from assay.errors import UsageError

    left = [c for c in choices if set(wanted) & set(c[1].dtypes)]
    without = {c[1].name: c[1].dtypes for c in choices if not set(wanted) & set(c[1].dtypes)}
    for name, dtypes in without.items():
        what = f"{name} is not declared for {' or '.join(wanted)}"
        if left:
            print(f"assay: left out: {what}", file=sys.stderr)
        else:
            refused.append(UsageError(what, fix=f"--dtype with one of: {', '.join(dtypes)}"))
    return left
