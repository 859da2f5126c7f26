"""What the harness launches beside a kernel on a GPU must not be needed."""

import pytest

from assay.backends import cuda
from assay.errors import BuildError
from assay.worker import disturb


@pytest.mark.parametrize("problem", [ImportError("no module named cuda.core"), BuildError("no NVRTC")])
def test_a_gpu_without_a_compiler_for_cuda_is_left_as_it_is(monkeypatch, problem):
    """Where only Triton is installed, its kernels are still checked."""

    def built(function):
        raise problem

    monkeypatch.setattr(cuda.Function, "built", built)
    disturb._kernel.cache_clear()
    try:
        assert disturb._kernel("spoil") is None and disturb._kernel("occupy") is None
        for _ in range(3):
            disturb.spoil()
    finally:
        disturb._kernel.cache_clear()
