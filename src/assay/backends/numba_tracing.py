"""Builds with Numba's own launch path (typing, compiler, linker) and a stand-in for the device, for any target. Nothing
is launched."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from assay import host, tool
from assay.artifact import Artifact
from assay.backends.base import Launch
from assay.backends.nvrtc import describe
from assay.errors import BuildError, UsageError
from assay.isa.ptx import architecture
from assay.target import Target

_NUL = "\0"
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


@contextlib.contextmanager
def recording(target: Target) -> Iterator[list[Launch]]:
    """While open, launches of Numba kernels are built for `target` and listed. `cuda.as_cuda_array` takes tensors on
    any device; only their dtypes, shapes and strides matter."""
    launches: list[Launch] = []

    def build(kernel: Any, grid: Any, block: Any, shared: int, args: tuple[Any, ...]) -> None:
        launches.append(Launch(_artifact(kernel, args), grid, block, shared))

    with _launches_replaced(target, build):
        yield launches


def instead_of_launches(target: Target, found: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """While open, `found` is called in place of each launch of a Numba function."""
    return _launches_replaced(target, lambda *_: found())


@contextlib.contextmanager
def _launches_replaced(target: Target, do: Callable[[Any, Any, Any, int, tuple[Any, ...]], None]) -> Iterator[None]:
    """While open, `do` gets each kernel that would be launched on `target`, with its grid, block, shared memory and
    arguments."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        raise UsageError("Numba's simulator compiles nothing", fix="build in a worker of mode native")
    from numba import cuda
    from numba.cuda import dispatcher
    from numba.cuda.cudadrv import devices

    device = SimpleNamespace(compute_capability=target.capability, id=-1)
    context = SimpleNamespace(device=device)

    def configure(self: Any, grid: Any, block: Any, stream: Any = 0, sharedmem: int = 0) -> Callable[..., None]:
        from numba.cuda.errors import normalize_kernel_dimensions

        grid, block = (_trimmed(d) for d in normalize_kernel_dimensions(grid, block))
        return lambda *args: do(self, grid, block, sharedmem, args)

    patches: list[tuple[Any, str, Any]] = [
        (dispatcher.CUDADispatcher, "configure", configure),
        (dispatcher, "get_current_device", lambda: device),
        (devices, "get_context", lambda number=None: context),
        (cuda, "as_cuda_array", _array),
    ]
    originals = [(place, name, getattr(place, name)) for place, name, _ in patches]
    for place, name, value in patches:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in originals:
            setattr(place, name, value)


@contextlib.contextmanager
def launched() -> Iterator[list[Artifact]]:
    """While open, the code that is actually launched is listed. The simulator launches nothing."""
    seen: list[Artifact] = []
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        yield seen
        return
    from numba.cuda.dispatcher import _Kernel

    launch = _Kernel.launch

    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(_described(self))
        return launch(self, *args, **kwargs)

    _Kernel.launch = start
    try:
        yield seen
    finally:
        _Kernel.launch = launch


def _array(tensor: Any, sync: bool = True) -> Any:
    """Return a device array like the one that Numba makes of a contiguous or strided torch tensor on a GPU."""
    import torch
    from numba.cuda.api_util import prepare_shape_strides_dtype
    from numba.cuda.cudadrv.devicearray import DeviceNDArray

    size = tensor.element_size()
    strides = None if tensor.is_contiguous() else tuple(s * size for s in tensor.stride())
    number = "|V2" if tensor.dtype == torch.bfloat16 else str(tensor.dtype).removeprefix("torch.")
    shape, strides, kind = prepare_shape_strides_dtype(tuple(tensor.shape), strides, number, order="C")
    return DeviceNDArray(shape, strides, kind, gpu_data=tensor)


def _trimmed(dimensions: tuple[int, ...]) -> tuple[int, ...]:
    """Return the dimensions without the trailing 1s that Numba appends."""
    while len(dimensions) > 1 and dimensions[-1] == 1:
        dimensions = dimensions[:-1]
    return tuple(dimensions)


def _artifact(kernel: Any, args: tuple[Any, ...]) -> Artifact:
    """Build the kernel that the dispatcher would compile for these arguments, with a line table where that is possible:
    it changes no code."""
    from numba.cuda.dispatcher import _Kernel

    types = tuple(kernel.typeof_pyval(a) for a in args)
    options = kernel.targetoptions
    # NVVM refuses the line table of some code, and nvJitLink 13 loses a label in some code that has one.
    with contextlib.suppress(Exception):
        with contextlib.nullcontext() if options["debug"] or options["lineinfo"] else _plain_symbols():
            built = _Kernel(kernel.py_func, types, **(options | {"lineinfo": True}))
        return _described(built)
    try:
        return _described(_Kernel(kernel.py_func, types, **options))
    except Exception as error:
        raise _refusal(kernel, error) from error


def _described(built: Any) -> Artifact:
    """Return the artifact of a kernel that Numba has compiled."""
    ptx, cubin, linker = _linked(built.library)
    built_for = architecture(ptx.decode())
    assert built_for
    artifact = describe(
        f"{built.py_func.__name__}({', '.join(str(t) for t in built.argument_types)})",
        built.entry_name,
        Target(built_for),  # Numba builds sm_90 as sm_90a
        f"numba-cuda {host.version('numba-cuda')}, {linker}",
        ptx,
        cubin,
        hashlib.sha256(Path(built.py_func.__code__.co_filename).read_bytes()).hexdigest()[:16],
    )
    return replace(artifact, ir={"llir": built.library.get_llvm_str()})


@contextlib.contextmanager
def _plain_symbols() -> Iterator[None]:
    """While open, kernels are named as if they had no line table, as they are when launched. Numba mangles its flags
    into the symbol, and a symbol can change the code that ptxas makes."""
    from numba.cuda.core.targetconfig import TargetConfig

    mangled = TargetConfig.get_mangle_string

    def plain(flags: Any) -> str:
        flags = flags.copy()
        flags.discard("debuginfo")
        flags.discard("dbg_directives_only")
        name: str = mangled(flags)
        return name

    TargetConfig.get_mangle_string = plain
    try:
        yield
    finally:
        TargetConfig.get_mangle_string = mangled


def _linked(library: Any) -> tuple[bytes, bytes, str]:
    """Return PTX, cubin and the linker's name. With nvJitLink, Numba optimizes at link time by default; the PTX is then
    what the cubin is made of."""
    from cuda.bindings import nvjitlink
    from numba.cuda.cudadrv import driver as _driver

    driver: Any = _driver
    ptx = (library.get_lto_ptx() if library._lto else library.get_asm_str()).encode()
    if not driver._have_nvjitlink():  # the driver would link
        return ptx, _assembled(ptx, library), f"{_ptxas()} in place of the driver's linker"
    major, minor = nvjitlink.version()
    return ptx, library.get_cubin().code, f"nvjitlink {major}.{minor}" + (", LTO" if library._lto else "")


def _assembled(ptx: bytes, library: Any) -> bytes:
    if library._linking_files or library.needs_cudadevrt:
        raise BuildError("it links other files, which takes nvJitLink", fix="pip install nvidia-nvjitlink==13.0.88")
    major, minor, suffix = library._ensure_cc(None)
    limit = (f"--maxrregcount={library._max_registers}",) if library._max_registers else ()
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_bytes(ptx)
        arch = f"-arch=sm_{major}{minor}{suffix}"
        ran = tool.call([tool.path("ptxas"), "-lineinfo", *limit, arch, source, "-o", result])
        if ran.code:
            raise BuildError(f"ptxas:\n{ran.complaint}")
        return result.read_bytes()


def _ptxas() -> str:
    try:
        return f"ptxas {tool.version(tool.path('ptxas'))}"
    except tool.Missing:
        raise BuildError(
            "neither nvJitLink nor ptxas is here, and there is no driver to link with",
            fix="pip install nvidia-nvjitlink==13.0.88",
        ) from None


def _refusal(kernel: Any, error: Exception) -> BuildError:
    if isinstance(error, BuildError):
        return error
    if isinstance(error, OSError | ImportError):  # the toolchain is incomplete, whatever the source
        return BuildError(f"Numba cannot compile here: {error}", fix="pip install 'kernel-assay[numba]'")
    code = kernel.py_func.__code__
    line = _line(error, code.co_filename) or code.co_firstlineno
    return BuildError(
        f"Numba refused {kernel.py_func.__name__}:\n{type(error).__name__}: {str(error).replace(_NUL, '')}",
        where=f"{code.co_filename}:{line}",
        fix="fix the source at the line named above",
    )


def _line(error: Exception, file: str) -> int | None:
    """Return the line of the file where Numba failed. Its message names the innermost line first; if it names none, the
    line is that of the last statement or constraint in the frames of its own functions."""
    for named_file, line in _PLACE.findall(str(error)):
        if named_file == file:
            return int(line)
    line_number, at = None, error.__traceback__
    while at is not None:
        for held in at.tb_frame.f_locals.values():
            loc: Any = getattr(held, "loc", None)
            if getattr(loc, "filename", "") == file:
                line_number = int(loc.line)
        at = at.tb_next
    return line_number
