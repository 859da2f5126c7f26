"""Inside a worker: turns a kernel's address into a function, and a workload into the arguments that it asks for."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from assay import provenance
from assay.backends import backend
from assay.catalog import library
from assay.dtype import DType
from assay.errors import SourceError
from assay.kernel import PREPARED, Kernel
from assay.op import Op
from assay.worker.request import Call


def function(kernel: Kernel, op: Op, dtype: DType) -> Callable[..., Any]:
    """Return the kernel as a function of the op's inputs by position and the rest by name."""
    if kernel.launches:
        from assay.backends.launch_comment import launcher

        return launcher(kernel, op, dtype)
    if kernel.file is None:
        derive: Callable[[Op, str], Callable[..., Any]] = importlib.import_module(
            f"assay.backends.{kernel.address.backend}"
        ).derive
        return derive(op, kernel.address.variant)
    loaded = module(kernel.file)
    return Preparing(loaded, kernel, op) if kernel.prepare else _find(loaded, kernel)


class Preparing:
    """A kernel with a preparation. Every call prepares first; `bench` prepares outside the timed region
    (assay.worker.preparation)."""

    def __init__(self, loaded: Any, kernel: Kernel, op: Op) -> None:
        self.kernel, self.run = kernel, _find(loaded, kernel)
        self._prepare = getattr(loaded, kernel.prepare)
        self.constant = [t.constant for t in op.inputs.values()]

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self.run(*inputs, **self.own(named), **{PREPARED: self.prepared(inputs, named)})

    def prepared(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return what the preparation makes of the constant inputs. Of the others it gets only shape and dtype."""
        shown = [
            value if value is None or constant else value.to("meta")
            for value, constant in zip(inputs, self.constant, strict=True)
        ]
        return self._prepare(*shown, **{n: v for n, v in named.items() if n in self.kernel.prepares})

    def own(self, named: dict[str, Any]) -> dict[str, Any]:
        """Return those of the arguments passed by name that the kernel itself takes."""
        return {n: v for n, v in named.items() if n in self.kernel.parameters}


def module(file: Path) -> Any:
    """Import a kernel's file: by its own name if it is the library's, else by path with its folder importable."""
    if library.ROOT in file.parents:
        parts = file.relative_to(library.ROOT).with_suffix("").parts
        return importlib.import_module(".".join(["assay.library", *parts]))
    name = f"assay_user_{file.stem}"
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(file):
        return sys.modules[name]
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(name, file, loader=_AsWritten(name, str(file)))
    assert spec is not None and spec.loader is not None
    loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ImportError):
            raise _not_importable(file, error) from error
        raise
    return loaded


def _not_importable(file: Path, error: ImportError) -> SourceError:
    """Return the error for an import that failed, with what to do about it."""
    text = str(error)
    if isinstance(error, ModuleNotFoundError):
        fix = f"pip install {(error.name or '').partition('.')[0]} (its distribution may have another name)"
    elif "relative import" in text:
        fix = "import the module by its plain name: the file's own folder is searched"
    elif "partially initialized" in text or "circular import" in text:
        fix = "move what both files need into a third one"
    else:
        fix = "check the name, and the version of what is installed"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent == file.parent]
    where = f"{provenance.shown(Path(frames[-1].filename))}:{frames[-1].lineno}" if frames else provenance.shown(file)
    return SourceError(f"{type(error).__name__}: {text}", where=where, fix=fix)


class _AsWritten(SourceFileLoader):
    """Compiles the file as it is. Python's own cache treats a file of the same size that changed within the same second
    as unchanged, and leaves a folder beside the file."""

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


def _find(loaded: Any, kernel: Kernel) -> Callable[..., Any]:
    member = getattr(loaded, kernel.function, None)
    if not callable(member):
        raise SourceError(
            f"{kernel.function} is not a function of this file once it is imported",
            where=f"{kernel.file}:{kernel.line}",
            fix="define the kernel at the top level of the file",
        )
    return partial(member, **kernel.fixed) if kernel.fixed else member


def keywords(kernel: Kernel, op: Op, named: dict[str, Any]) -> dict[str, Any]:
    """Return those of the arguments available by name that the kernel's signature asks for."""
    if kernel.file is None or kernel.launches:
        return named
    return {n: v for n, v in named.items() if n in kernel.asks}


def op_of(call: Call) -> Op:
    """Return the op by its name and its file: a user's op may have the name of one of the library's."""
    return library.ops_of(Path(call.op_file))[call.op]


def arguments(call: Call, op: Op, tensors: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what the kernel is called with: the op's inputs by position, and by name whatever else its signature asks
    for. `tensors` are those of the call."""
    present = {spec.name for spec in call.inputs}
    named = dict(call.attributes) | {spec.name: tensors[spec.name] for spec in (*call.outputs, *call.scratch)}
    given = keywords(call.kernel, op, named) | call.parameters
    if call.kernel.launches:
        given |= call.axes
    return tuple(tensors[n] if n in present else None for n in op.inputs), given


def prepare(kernel: Kernel, mode: str) -> None:
    backend(kernel.address.backend).prepare(mode)
