"""Runs the statements that a file's ops need, and no others, in this process, which computes the references."""

import ast
import contextlib
import hashlib
import signal
import sys
import threading
import types
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from assay.catalog.needed import needed_by
from assay.errors import AssayError, SourceError
from assay.op import Op

PATIENCE = 60.0
"""Seconds that the declaration of a file's ops may take: importing torch on a busy machine takes some of them."""


class TooLong(BaseException):
    """Raised inside `bounded`. It is not an Exception, so that no `except Exception` there catches it."""


def executed(file: Path, tree: ast.Module, wanted: list[ast.FunctionDef]) -> dict[str, Op]:
    """Run the declarations of these decorated functions, and return the ops by the function's name."""
    needed = needed_by(tree, wanted)
    module = ast.Module([n for n in tree.body if n in needed], type_ignores=[])
    path = str(file.resolve())
    unique = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:8]
    home = types.ModuleType(f"assay_ops_{file.parent.name}_{file.stem}_{unique}")
    home.__file__ = path
    sys.modules[home.__name__] = home  # torch.compile looks a function's module up by name
    _import_torch(module)
    try:
        with _importable(file.resolve().parent), bounded(PATIENCE):
            exec(compile(module, path, "exec"), vars(home))
    except (Exception, SystemExit, TooLong) as error:
        raise _failed(file, path, error) from error
    ops = {f.name: vars(home).get(f.name) for f in wanted}
    return {name: replace(op, source=path) for name, op in ops.items() if isinstance(op, Op)}


def _import_torch(module: ast.Module) -> None:
    """Import torch before the time limit starts, if these statements import it: an interrupted import cannot be
    repeated."""
    later = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    nodes = [n for s in module.body if not isinstance(s, later) for n in ast.walk(s)]
    imported = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    imported |= {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)}
    if any(name.partition(".")[0] == "torch" for name in imported):
        with contextlib.suppress(ImportError):
            import_module("torch")


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Make the modules beside the file importable. Afterwards they are removed from sys.modules: beside another file,
    the same name is another module."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == folder:
                del sys.modules[name]


@contextlib.contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raise TooLong in the block after so many seconds. There is no limit in other threads than the main one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _failed(file: Path, path: str, error: BaseException) -> SourceError:
    """Return an error that says where the declaration failed, and why."""
    at, where = error.__traceback__, str(file)
    while at:
        if at.tb_frame.f_code.co_filename == path:
            where = f"{file}:{at.tb_lineno}"
        at = at.tb_next
    if isinstance(error, AssayError):
        return SourceError(f"the op's declaration failed: {error.what}", where=where, fix=error.fix)
    if isinstance(error, TooLong):
        what = f"the op's declaration is not done after {PATIENCE:g} s"
        return SourceError(what, where=where, fix="compute inside the reference what takes so long")
    if isinstance(error, SystemExit):
        what = "the file ends the process while its op is declared"
        return SourceError(what, where=where, fix='keep that under `if __name__ == "__main__":`')
    fix = "an op is declared with @op(axes=…, inputs=…, outputs=…); see docs/ops.md"
    if isinstance(error, ModuleNotFoundError):
        fix = f"install what provides {error.name}, or import it inside the reference if only that needs it"
    return SourceError(f"the op's declaration failed: {type(error).__name__}: {error}", where=where, fix=fix)
