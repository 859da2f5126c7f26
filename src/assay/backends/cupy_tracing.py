"""Stand-ins for CuPy's kernel classes where there is no driver: the code comes from CuPy's own generators, NVRTC builds
it, and nothing is launched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.backends import arguments, nvrtc
from assay.backends.base import Launch
from assay.errors import LaunchError
from assay.isa.parameters import parameters
from assay.target import Target

_recording: tuple[Target, list[Launch]] | None = None
_FLOAT = arguments.Argument(arguments.FLOAT, 8, "a float, which CuPy passes as `double`")
_BLOCK = 512
"""CuPy's block size for reductions; its elementwise kernels use 128."""
_CUB = "this is CuPy's plain reduction; on a GPU it may take one that it builds on CUB"
"""CuPy decides this at the call; on an H200 it took CUB."""


@contextlib.contextmanager
def recording(target: Target) -> Iterator[list[Launch]]:
    global _recording
    _recording = (target, [])
    try:
        yield _recording[1]
    finally:
        _recording = None


def install() -> None:
    """Put the stand-ins into the cupy module, before any kernel file is imported."""
    import cupy

    cupy.RawKernel, cupy.RawModule = RawKernel, RawModule
    cupy.ElementwiseKernel = _Elementwise.of(cupy.ElementwiseKernel)
    cupy.ReductionKernel = _Reduction.of(cupy.ReductionKernel)
    cupy.asarray = cupy.from_dlpack = Array


class Array:
    """The part of an array that the generators use."""

    def __init__(self, tensor: Any) -> None:
        import numpy as np

        plain: Any = tensor.data if isinstance(tensor, Array) else tensor
        self.data: Any = plain
        self.dtype = np.dtype(str(plain.dtype).removeprefix("torch."))
        self.shape, self.ndim, self.size = tuple(plain.shape), plain.dim(), plain.numel()
        self.contiguous = plain.is_contiguous()

    def __getattr__(self, name: str) -> Any:
        """Forward methods such as reshape and view to torch."""
        method = getattr(self.data, {"ravel": "flatten"}.get(name, name))
        return lambda *args: Array(method(*args))

    def __getitem__(self, index: Any) -> Array:
        return Array(self.data[index])


def _record(
    code: str,
    name: str,
    options: Sequence[str],
    grid: Any,
    block: Any,
    shared: int = 0,
    named: bool = False,
    doubt: str = "",
    args: Sequence[Any] | None = None,
) -> None:
    """Build a kernel and list its launch. `args`: the arguments of a hand-written launch; CuPy's own need no check."""
    if _recording is None:
        raise RuntimeError("no GPU here: CuPy kernels can be built, not called")
    target, launches = _recording
    wanted = tuple(o for o in options if not o.startswith(("-arch", "-std")))
    flags = (*wanted, "-ftz=true")  # CuPy always flushes subnormals
    artifact = nvrtc.build(code, f"{name.split('<')[0]}.cu", name, target, flags, named=named)
    if args is not None:
        takes = parameters(artifact.symbol, artifact.ptx)
        arguments.check(name, takes, [_argument(a) for a in args], source=code)
    launches.append(Launch(replace(artifact, doubt=doubt), tuple(grid), tuple(block), shared))


class RawModule:
    def __init__(
        self, *, code: str, options: Sequence[str] = (), name_expressions: Sequence[str] | None = None, **_: Any
    ) -> None:
        self.code, self.options, self.expressions = code, tuple(options), tuple(name_expressions or ())

    def get_function(self, name: str) -> RawKernel:
        return RawKernel(self.code, name, self.options, named=name in self.expressions)


class RawKernel:
    def __init__(self, code: str, name: str, options: Sequence[str] = (), named: bool = False, **_: Any) -> None:
        self.code, self.name, self.options, self.named = code, name, options, named

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, **_: Any) -> None:
        _record(self.code, self.name, self.options, grid, block, shared_mem, self.named, args=args)


def _argument(value: Any) -> arguments.Argument | None:
    """Return what CuPy passes for a value; None if unknown."""
    if isinstance(value, Array) or hasattr(value, "data_ptr"):
        return arguments.tensor(value.dtype)
    if isinstance(value, bool):
        return arguments.BOOL
    if isinstance(value, int):
        return arguments.INT
    scalar = arguments.scalar(value)
    return _FLOAT if scalar is None and isinstance(value, float) else scalar


def _cupy_headers() -> tuple[str, ...]:
    import cupy

    include = Path(cupy.__file__).parent / "_core" / "include"
    return (
        f"-I{include}",
        f"-I{include}/cupy/_cccl/libcudacxx",
        f"-I{include}/cupy/_cccl/cub",
        f"-I{include}/cupy/_cccl/thrust",
    )


def _with_carray(code: str) -> str:
    headers = ("complex.cuh", "carray.cuh", "atomics.cuh", "math_constants.h")
    return "".join(f"#include <cupy/{h}>\n" for h in headers) + code


def _argument_info(arg: Any, size: int) -> Any:
    """Return CuPy's own description of an argument, as its generators expect it. 1: array, 3: scalar."""
    import cupy
    import numpy as np
    from cupy._core import _kernel

    if isinstance(arg, Array):
        dims = 1 if arg.contiguous else arg.ndim
        return _kernel._ArgInfo(1, cupy.ndarray, arg.dtype.type, dims, arg.contiguous, size < 2**31)
    from cupy._core._scalar import CScalar

    return _kernel._ArgInfo(3, CScalar, np.asarray(arg).dtype.type, 0, True, True)


def _indexer_info(size: int) -> Any:
    from cupy._core import _carray, _kernel

    return _kernel._ArgInfo(2, _carray.Indexer, None, 1, True, size < 2**31)


class _Generated:
    """A kernel class whose source CuPy generates from the argument types."""

    original: Any

    @classmethod
    def of(cls, original: Any) -> type:
        return type(original.__name__, (cls,), {"original": original})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.kernel = self.original(*args, **kwargs)

    def _types(self, args: Sequence[Any]) -> Any:
        k = self.kernel
        if len(args) != k.nin + k.nout:
            names = ", ".join(p.name for p in (*k.in_params, *k.out_params))
            raise LaunchError(
                f"`{k.name}` takes {k.nin + k.nout} arguments ({names}) and gets {len(args)} in the launch",
                fix="pass them all, the outputs too: a kernel writes into arrays that it is given",
            )
        kinds = [a.dtype.type if isinstance(a, Array) else None for a in args]
        from cupy._core import _kernel

        return _kernel._decide_params_type(k.in_params, k.out_params, tuple(kinds[: k.nin]), tuple(kinds[k.nin :]))


class _Elementwise(_Generated):
    def __call__(self, *args: Any, size: int | None = None, block_size: int = 128, **_: Any) -> None:
        import numpy as np
        from cupy._core import _kernel

        k = self.kernel
        args = tuple(Array(a) if hasattr(a, "data_ptr") else a for a in args)
        total = size if size is not None else max(a.size for a in args if isinstance(a, Array))
        if total == 0:
            return
        in_types, _, type_map = self._types(args)
        scalars = [a if isinstance(a, Array) else np.dtype(t).type(a) for a, t in zip(args, in_types, strict=False)]
        infos = (*(_argument_info(a, total) for a in (*scalars, *args[len(scalars) :])), _indexer_info(total))
        options = k.kwargs.get("options", ())
        code = _kernel._get_elementwise_kernel_code(infos, type_map, k.params, k.operation, k.name, k.preamble)
        _record(_with_carray(code), k.name, (*_cupy_headers(), *options), (-(-total // block_size),), (block_size,))


class _Reduction(_Generated):
    def __call__(self, *args: Any, out: Any = None, axis: Any = None, **_: Any) -> None:
        from cupy._core import _kernel, _reduction

        k = self.kernel
        args = tuple(Array(a) if hasattr(a, "data_ptr") else a for a in (*args, *([out] if out is not None else [])))
        total = max(a.size for a in args if isinstance(a, Array))
        results = args[-1].size
        if results == 0:
            return
        _, _, type_map = self._types(args)
        type_map = _kernel._TypeMap((*type_map._pairs, ("IndexT", "int32")))
        tail = (_indexer_info(total), _indexer_info(results), _argument_info(1, 1))
        infos = (*(_argument_info(a, total) for a in args), *tail)
        ins = "".join(f"const {p.ctype} {p.name} = _raw_{p.name}[_in_ind.get()];\n" for p in k.in_params if not p.raw)
        outs = "".join(f"{p.ctype} &{p.name} = _raw_{p.name}[_out_ind.get()];\n" for p in k.out_params if not p.raw)
        kind = k.reduce_type or next(p.ctype for p in k.out_params)
        code = _reduction._create_reduction_function_code(
            k.name,
            _BLOCK,
            kind,
            k._params,
            infos,
            k.identity,
            k.map_expr,
            k.reduce_expr,
            k.post_map_expr,
            type_map,
            ins,
            outs,
            k.preamble,
            k.options,
        )
        options = (*_cupy_headers(), *k.options)
        _record(_with_carray(code), k.name, options, (results,), (_BLOCK,), doubt=_CUB)
