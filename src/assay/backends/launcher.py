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


_USUAL = Options()


class Launcher:
    """A loaded kernel. Tensors are passed as pointers (None as null), ints as `long long`, floats as `float`."""

    def __init__(self, kernel: Any) -> None:
        import numpy
        import torch

        self._kernel, self._shared = kernel, 0
        self._int, self._float, self._bool, self._tensor = numpy.int64, numpy.float32, numpy.bool_, torch.Tensor
        self._stream, self._device = torch._C._cuda_getCurrentRawStream, torch.cuda.current_device

    def __call__(self, grid: Sizes, block: Sizes, arguments: tuple[Any, ...], options: Options = _USUAL) -> None:
        from cuda.core import launch

        if options.shared > 48 * 1024 and options.shared > self._shared:
            _allow(self._kernel, options.shared)
            self._shared = options.shared
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
        if isinstance(value, float):
            return self._float(value)
        return value


@cache
def _stream(handle: int) -> Any:
    from cuda.core import Stream

    return Stream.from_handle(handle)


@lru_cache(4096)
def _config(grid: Sizes, block: Sizes, options: Options) -> Any:
    from cuda.core import LaunchConfig

    more = {"programmatic_stream_serialization": True} if options.early else {}  # older cuda-core does not know it
    return LaunchConfig(grid=grid, block=block, shmem_size=options.shared, is_cooperative=options.cooperative, **more)


def _allow(kernel: Any, shared: int) -> None:
    """Raise the kernel's limit of dynamic shared memory above the default."""
    from cuda.bindings import driver

    which = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    handle = driver.CUkernel(int(getattr(kernel, "handle", None) or kernel._handle))
    code, device = driver.cuCtxGetDevice()
    if code == driver.CUresult.CUDA_SUCCESS:
        (code,) = driver.cuKernelSetAttribute(which, shared, handle, device)
    if code != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{shared} bytes of shared memory a block: the driver says {code.name}")
