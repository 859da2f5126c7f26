"""CUDA C++: a plain .cu file, built by NVRTC for one named instance, launched on torch's current stream."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from assay import host
from assay.artifact import Artifact
from assay.backends import arguments, nvrtc
from assay.backends.base import Availability, Backend, Launch, Level, missing, no_gpu
from assay.backends.launcher import Launcher, Options
from assay.dtype import dtype
from assay.errors import LaunchError, UsageError
from assay.isa import cubin as cubins
from assay.isa.names import canonical, instance
from assay.isa.parameters import Parameter, parameters
from assay.isa.ptx import entries, shared_by_launches
from assay.target import Target

if TYPE_CHECKING:
    import torch

_FLOAT = arguments.Argument(arguments.FLOAT, 4, "a float")
_INSTALL = "pip install cuda-core cuda-bindings nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96"


class Cuda(Backend):
    name, title, packages = "cuda", "CUDA C++", ("cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc")

    def availability(self, variant: str = "") -> Availability:
        if gone := missing(("cuda.bindings", _INSTALL), ("torch", "pip install torch")):
            return gone
        if host.cuda_include() is None:
            return Availability(Level.MISSING, "cuda_fp16.h is nowhere", "pip install nvidia-cuda-runtime==13.0.96")
        if host.runs_on_gpu():
            if gone := missing(("cuda.core", _INSTALL)):
                return gone
            return Availability(Level.RUN, "", device="cuda")
        return Availability(
            Level.COMPILE, f"{no_gpu()}: builds PTX and cubin, cannot run", "run it on a machine with an NVIDIA GPU"
        )

    def built_for(self, target: Target) -> Target:
        """Build sm_90 as sm_90a, as Triton does, since wgmma needs it."""
        return Target("sm_90a") if str(target) == "sm_90" else target

    @contextlib.contextmanager
    def tracing(self, target: Target, compiler: str = "") -> Iterator[list[Launch]]:
        global _tracing
        _tracing = _Tracing(target, compiler, [])
        try:
            yield _tracing.launches
        finally:
            _tracing = None

    @contextlib.contextmanager
    def instead_of_launches(self, target: Target, found: Callable[[], None]) -> Iterator[None]:
        global _tracing
        _tracing = _Tracing(target, "", [], found)
        try:
            yield
        finally:
            _tracing = None

    def rewrite(self, change: Callable[[str], str], folder: Path) -> None:
        global _change
        _change = change

    @contextlib.contextmanager
    def launched(self) -> Iterator[list[Artifact]]:
        global _launched
        _launched = []
        try:
            yield _launched
        finally:
            _launched = None


class _Tracing(NamedTuple):
    target: Target
    compiler: str
    launches: list[Launch]
    found: Callable[[], None] | None = None
    """If given, it is called in place of each launch, and nothing is built."""


_tracing: _Tracing | None = None
_launched: list[Artifact] | None = None
_change: Callable[[str], str] | None = None
"""Applied to PTX before it is assembled."""


_VARIABLE = re.compile(rb"^(?:\.visible |\.weak )?\.global ", re.MULTILINE)


def built_for() -> Target:
    """Return the target of the next launch: the one being traced, or this machine's GPU."""
    if _tracing is not None:
        return _tracing.target
    return host.target()


def ctype(tensor: torch.Tensor) -> str:
    """Return the C++ type of a tensor's elements: `__nv_bfloat16`."""
    return dtype(tensor.dtype).ctype


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def power_of_2(a: int) -> int:
    """Return the smallest power of 2 that is not below `a`."""
    return 1 << max(0, a - 1).bit_length()


def vector_width(*tensors: torch.Tensor) -> int:
    """Return the elements per 16-byte access if every tensor starts on a 16-byte boundary, else 1."""
    width = 16 // tensors[0].element_size()
    return width if all(t.data_ptr() % 16 == 0 for t in tensors) else 1


class Loaded(NamedTuple):
    """A kernel that the driver has loaded."""

    kernel: Any
    artifact: Artifact | None
    parameters: tuple[Parameter, ...] | None
    """None if unknown."""


class Source:
    """A .cu file beside the Python that launches it: `Source("k.cu")["gelu<float, 4>"](grid, block, x, out, n)`."""

    def __init__(self, file: str | Path, *options: str, compiler: str = "nvrtc") -> None:
        path = Path(file)
        if not path.is_absolute():
            path = Path(inspect.stack()[1].filename).parent / path
        self.file, self.options, self.compiler = path, options, compiler
        self._functions: dict[str, Function] = {}
        self._users: dict[str, str] = {}
        """By variable in global memory: the kernel built first that uses it."""

    @cached_property
    def text(self) -> str:
        """Without a byte order mark, which NVRTC refuses. Comments may be in any encoding."""
        if not self.file.is_file():
            raise UsageError(
                f"there is no file {self.file}",
                fix="Source takes a path relative to the folder of the Python file that calls it, or an absolute one",
            )
        return self.file.read_text(encoding="utf-8-sig", errors="replace")

    def __getitem__(self, name: str) -> Function:
        if name not in self._functions:
            self._functions[name] = Function(self, name)
        return self._functions[name]

    def build(self, name: str, target: Target, compiler: str = "") -> Artifact:
        """Return the artifact of one instance, built by this source's compiler unless another is named."""
        if (compiler or host.compiler() or self.compiler) == "nvcc":
            from assay.backends import nvcc

            artifact = nvcc.build(self.text, str(self.file), name, target, self.options)
        else:
            include = f"-I{self.file.parent}"
            artifact = nvrtc.build(self.text, str(self.file), name, target, (include, *self.options))
        self._refuse_shared(name, artifact)
        return artifact

    def _refuse_shared(self, name: str, artifact: Artifact) -> None:
        """Raise if another kernel uses the same `__device__` variable: each is a module with variables of its own."""
        if not _VARIABLE.search(artifact.ptx):
            return
        for variable in shared_by_launches(artifact.ptx.decode(errors="replace"), artifact.symbol):
            other = self._users.setdefault(variable, name)
            if other.partition("<")[0] != name.partition("<")[0]:
                raise UsageError(
                    f"{self.file.name}: {other} and {name} share the __device__ variable {variable}, and each kernel "
                    "is built by itself with its own",
                    fix="launch both from Python, and pass it from one to the other as scratch memory "
                    "(docs/languages.md, “Scratch memory”)",
                )

    def load(self, name: str) -> Loaded:
        """Build one instance for this GPU and load it."""
        from cuda.core import ObjectCode

        gpu = host.gpu()
        assert gpu is not None
        artifact = self.build(name, BACKEND.built_for(gpu.target))
        if _change is not None:
            code = ObjectCode.from_ptx(_change(artifact.ptx.decode()).encode())
        else:
            code = ObjectCode.from_cubin(artifact.cubin)
        return Loaded(code.get_kernel(artifact.symbol), artifact, parameters(artifact.symbol, artifact.ptx))


class Binary:
    """A cubin or PTX file, its kernels by demangled names: `Binary("x.cubin")["gelu<float, 4>"](grid, block, …)`."""

    text = ""
    """Empty: there is no source to quote."""

    def __init__(self, file: str | Path) -> None:
        self.file = Path(file)
        self.data = self.file.read_bytes()
        self._functions: dict[str, Function] = {}

    @cached_property
    def symbols(self) -> dict[str, str]:
        """Demangled name → symbol, for every kernel in the file."""
        if self.data[:4] == b"\x7fELF":
            all_symbols = [f.symbol for f in cubins.functions(self.data)]
        else:
            all_symbols = entries(self.data.decode(errors="replace"))
        return {instance(symbol): symbol for symbol in all_symbols}

    def __getitem__(self, name: str) -> Function:
        if canonical(name) not in self.symbols:
            raise UsageError(f"{self.file} holds no kernel called {name}", fix=f"it holds: {', '.join(self.symbols)}")
        if name not in self._functions:
            self._functions[name] = Function(self, name)
        return self._functions[name]

    def load(self, name: str) -> Loaded:
        """Load a kernel. Only a cubin has an artifact: the driver's machine code for PTX is not visible."""
        from cuda.core import ObjectCode

        symbol = self.symbols[canonical(name)]
        if self.data[:4] != b"\x7fELF":
            data = _change(self.data.decode()).encode() if _change is not None else self.data
            return Loaded(ObjectCode.from_ptx(data).get_kernel(symbol), None, parameters(symbol, self.data))
        digest = hashlib.sha256(self.data).hexdigest()[:16]
        artifact = nvrtc.describe(name, symbol, cubins.target(self.data), "unknown", b"", self.data, digest)
        return Loaded(ObjectCode.from_cubin(self.data).get_kernel(symbol), artifact, parameters(symbol, b""))

    def build(self, name: str, target: Target, compiler: str = "") -> Artifact:
        raise UsageError(f"{self.file} is built already", fix="launch it on a machine with a GPU")


class Function:
    """One instance of a kernel, built when first launched."""

    def __init__(self, source: Source | Binary, name: str) -> None:
        self.source, self.name = source, name
        self.artifact: Artifact | None = None
        self._parameters: tuple[Parameter, ...] | None = None
        self._checked = False

    @cached_property
    def _launcher(self) -> Launcher:
        from cuda.core import Device

        Device().set_current()
        kernel, self.artifact, self._parameters = self.source.load(self.name)
        return Launcher(kernel)

    def __call__(
        self,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        *args: Any,
        shared: int = 0,
        early: bool = False,
        cooperative: bool = False,
        cluster: int = 1,
        where: str = "",
    ) -> None:
        """Launch. A tensor is passed as its pointer (None as null), an int as `long long`, a float as `float`.

        `shared`: bytes of dynamic shared memory. `early`: the kernel may start while the launch before it ends, and
        waits for that itself (sm_90; assay/bulk.cuh). `cooperative`: all blocks run at once and may wait for each other
        (`this_grid().sync()`). `cluster`: each so many neighbouring blocks along x run at once and reach each other's
        shared memory (sm_90; assay/cluster.cuh). `where`: the place of the launch for messages, if it is not the line
        of the call."""
        grid = grid if isinstance(grid, tuple) else (grid,)
        block = block if isinstance(block, tuple) else (block,)
        if 0 in grid:
            return
        if grid[0] % cluster:
            raise LaunchError(
                f"{grid[0]} blocks along x are not whole clusters of {cluster} in the launch of `{self.name}`",
                where=where,
                fix=f"start a multiple of {cluster}, and let blocks without work take part in the cluster's barriers",
            )
        if cluster > 1 and not self._checked and (target := built_for()).capability < (9, 0):
            raise LaunchError(
                f"clusters need sm_90: `{self.name}` is launched with cluster={cluster} for {target}",
                where=where,
                fix="name a target that has them (--target sm_90), or launch another kernel on older ones",
            )
        if _tracing is not None:
            if _tracing.found is not None:
                _tracing.found()
                return
            artifact = self.source.build(self.name, _tracing.target, _tracing.compiler)
            self._check(parameters(artifact.symbol, artifact.ptx), args, where)
            _tracing.launches.append(Launch(artifact, grid, block, shared, cluster))
            return
        launcher = self._launcher
        if not self._checked or _launched is not None:  # not every time: it would double the cost of a launch
            self._check(self._parameters, args, where)
            self._checked = True
        launcher(grid, block, args, Options(shared, early, cooperative, cluster))
        if _launched is not None and self.artifact is not None:
            _launched.append(self.artifact)

    def built(self) -> Function:
        """Build and load the kernel now, raising any error, and return it."""
        _ = self._launcher
        return self

    def unseen(self, grid: int, block: int, *args: Any) -> None:
        """Launch for the harness's own purposes, without listing it in `launched`."""
        self._launcher((grid,), (block,), args)

    def _check(self, takes: tuple[Parameter, ...] | None, args: tuple[Any, ...], where: str) -> None:
        arguments.check(
            self.name,
            takes,
            [_argument(a) for a in args],
            source=self.source.text,
            file=self.source.file.name,
            where=where,
        )


def _argument(value: Any) -> arguments.Argument | None:
    """Return what the launcher passes for a value; None if unknown."""
    if hasattr(value, "data_ptr"):
        return arguments.tensor(value.dtype)
    if value is None:
        return arguments.NULL
    if isinstance(value, bool):
        return arguments.BOOL
    if isinstance(value, int):
        return arguments.INT
    scalar = arguments.scalar(value)  # first: a numpy.float64 is a float too
    return _FLOAT if scalar is None and isinstance(value, float) else scalar


BACKEND = Cuda()
