"""What a cubin says about its kernels."""

import pytest

from assay.backends import nvrtc
from assay.isa.cubin import functions
from assay.target import Target


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_90a", "sm_100"])
@pytest.mark.parametrize(
    ("declared", "size"), [("__shared__ float s[300];", 1200), ("extern __shared__ float s[];", 0)]
)
def test_shared_memory_is_what_the_kernel_declares(target, declared, size):
    """Since sm_90 a cubin's section also has the kilobyte that the system takes from each block; ptxas omits it."""
    source = f"""
    __global__ void f(const float* x, float* y) {{
      {declared.replace("float", "__shared__ float")}
      s[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      y[threadIdx.x] = s[threadIdx.x ^ 1];
    }}"""
    artifact = nvrtc.build(source, "f.cu", "f", Target(target), ())
    (function,) = functions(artifact.cubin)
    assert function.shared == size
