"""What a command named, sorted into what can be judged and what is refused, before anything runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from assay.cli import session

if TYPE_CHECKING:
    from assay.errors import AssayError
    from assay.library.select import Choice


def chosen(what: Iterable[str], options: Any, *, whole_library: bool = False) -> list[Choice]:
    """The kernels to judge. What is wrong with one of those named is said at the end, and costs the others nothing;
    where nothing is left, the command ends with exit code 2."""
    from assay.dtype import dtype
    from assay.errors import UsageError
    from assay.kernel import BACKENDS
    from assay.library.select import everything, gather

    if unknown := [b for b in options.backends if b not in BACKENDS]:
        raise UsageError(f"--backend {unknown[0]}: no such backend", fix=f"one of: {', '.join(BACKENDS)}")
    wanted = [dtype(d).name for d in options.dtypes]
    named = list(what)
    if named or not whole_library:
        found = gather(named, options.op)
        choices, refused = found.choices, found.refused
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
    session.refuse(refused)
    if not choices:
        sys.exit(session.WRONG_USE)
    return choices


def _apart(choices: list[Choice], refused: list[AssayError], verify: Callable[[Choice], None]) -> list[Choice]:
    """Those that `verify` lets pass; the others' problems go to `refused`."""
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
    from assay.errors import UsageError
    from assay.library.asked import asked

    number = asked(text, choice[1]).dtype.name
    if wanted and number not in wanted:
        raise UsageError(
            f"--workload {text} is in {number}, --dtype says {','.join(wanted)}", fix="leave one of them out"
        )


def _declared(choices: list[Choice], wanted: list[str], refused: list[AssayError]) -> list[Choice]:
    """Kernels whose op is declared for a dtype that is wanted. Of several ops some may lack it: that is said, and is no
    error, for nobody names another dtype for each op."""
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
