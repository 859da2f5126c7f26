"""What the harness launches beside a kernel on a GPU must not be needed."""

from pathlib import Path

import pytest

from assay.backends import Level, backend, cuda, nvrtc
from assay.check import runs
from assay.errors import BuildError
from assay.target import target
from assay.worker import disturb


@pytest.mark.parametrize("problem", [ImportError("no module named cuda.core"), BuildError("no NVRTC")])
def test_a_gpu_without_a_compiler_for_cuda_is_left_as_it_is(monkeypatch, problem):
    """Where only Triton is installed, its kernels are still checked."""

    def built(function):
        raise problem

    monkeypatch.setattr(cuda.Function, "built", built)
    disturb._kernel.cache_clear()
    try:
        assert disturb._kernel("leave_words") is None and disturb._kernel("occupy") is None
        for kind in runs.SHARED:
            disturb.leave(kind)
    finally:
        disturb._kernel.cache_clear()


@pytest.mark.skipif(backend("cuda").availability().level is Level.MISSING, reason="no compiler for CUDA C++")
@pytest.mark.parametrize("name", ["occupy", "leave_words", "leave_barriers"])
@pytest.mark.parametrize("sm", ["sm_75", "sm_90"])
def test_they_are_built_for_every_gpu(name, sm):
    source = Path(disturb.__file__).with_name("disturb.cu")
    ptx = nvrtc.build(source.read_text(), source.name, name, target(sm)).ptx
    assert (b"mbarrier.init" in ptx) == (sm == "sm_90")
