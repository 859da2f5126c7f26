"""Launches a kernel through the driver, on torch's current stream, with as little overhead as Python allows."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

Sizes = tuple[int, ...]


class Options(NamedTuple):
    """How a kernel is launched, besides its grid and block."""

    shared: int = 0
    """Bytes of dynamic shared memory."""
    early: bool = False
    cooperative: bool = False
    cluster: int = 1
    """Blocks of a cluster, neighbours along x."""


PORTABLE_CLUSTER = 8
"""Blocks of the largest cluster that every GPU with clusters starts; a kernel must be allowed a larger one."""
_USUAL = Options()


class Launcher:
    """A loaded kernel. Tensors are passed as pointers (None as null), ints as `long long`, floats as `float`,
    and NumPy's scalars as what they are."""

    def __init__(self, kernel: Any) -> None:
        import numpy
        import torch

        self._kernel, self._shared, self._cluster = kernel, 0, PORTABLE_CLUSTER
        self._int, self._float, self._bool, self._tensor = numpy.int64, numpy.float32, numpy.bool_, torch.Tensor
        self._double = numpy.float64
        self._stream, self._device = torch._C._cuda_getCurrentRawStream, torch.cuda.current_device

    def __call__(self, grid: Sizes, block: Sizes, arguments: tuple[Any, ...], options: Options = _USUAL) -> None:
        from cuda.core import launch

        if options.shared > 48 * 1024 and options.shared > self._shared:
            _allow_shared(self._kernel, options.shared)
            self._shared = options.shared
        if options.cluster > self._cluster:
            _allow_clusters(self._kernel)
            self._cluster = options.cluster
        stream = _stream(self._stream(self._device()))
        launch(stream, _config(grid, block, options), self._kernel, *map(self._plain, arguments))

    def _plain(self, value: Any) -> Any:
        if isinstance(value, self._tensor):
            return value.data_ptr()
        if value is None:
            return 0
        if isinstance(value, bool):
            return self._bool(value)
        if isinstance(value, int):
            return self._int(value)
        if isinstance(value, float) and not isinstance(value, self._double):  # a numpy.float64 is a float too
            return self._float(value)
        return value


@cache
def _stream(handle: int) -> Any:
    from cuda.core import Stream

    return Stream.from_handle(handle)


@lru_cache(4096)
def _config(grid: Sizes, block: Sizes, options: Options) -> Any:
    from cuda.core import LaunchConfig

    more: dict[str, Any] = {}
    if options.early:
        more["programmatic_stream_serialization"] = True  # older cuda-core does not know it
    if options.cluster > 1:  # cuda-core counts a grid in clusters then
        more["cluster"], grid = options.cluster, (grid[0] // options.cluster, *grid[1:])
    return LaunchConfig(grid=grid, block=block, shmem_size=options.shared, is_cooperative=options.cooperative, **more)


def _allow_shared(kernel: Any, shared: int) -> None:
    """Raise the kernel's limit of dynamic shared memory above the default."""
    _allow(kernel, "MAX_DYNAMIC_SHARED_SIZE_BYTES", shared, f"{shared} bytes of shared memory a block")


def _allow_clusters(kernel: Any) -> None:
    """Allow the kernel clusters that not every GPU with clusters starts."""
    _allow(kernel, "NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1, f"more than {PORTABLE_CLUSTER} blocks a cluster")


def _allow(kernel: Any, attribute: str, value: int, what: str) -> None:
    from cuda.bindings import driver

    which = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{attribute}")
    handle = driver.CUkernel(int(getattr(kernel, "handle", None) or kernel._handle))
    code, device = driver.cuCtxGetDevice()
    if code == driver.CUresult.CUDA_SUCCESS:
        (code,) = driver.cuKernelSetAttribute(which, value, handle, device)
    if code != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{what}: the driver says {code.name}")
