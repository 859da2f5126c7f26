"""A CUDA source builds whatever editor saved it: with a byte order mark, or with comments that are not UTF-8."""

import pytest

from assay import tool
from assay.backends import nvcc
from assay.backends.cuda import Source
from assay.errors import AssayError
from assay.target import Target

pytest.importorskip("cuda.bindings")
KERNEL = b'#include "h.cuh"\n// Gau\xdf\n__global__ void k(float* x) { x[0] = ONE + 1; }\n'
SAVED = {"mark": b"\xef\xbb\xbf" + KERNEL.replace(b"\xdf", b"ss"), "latin": KERNEL}


@pytest.fixture(params=SAVED)
def file(request, tmp_path):
    (tmp_path / "h.cuh").write_bytes(b"// Gau\xdf\n#define ONE 1.0f\n")
    file = tmp_path / "k.cu"
    file.write_bytes(SAVED[request.param])
    return file


@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
def test_it_builds(file, compiler):
    if compiler == "nvcc":
        try:
            tool.path("nvcc")
        except AssayError:
            pytest.skip("no nvcc here")
        assert nvcc.whole(file, Target("sm_90"))[1]
    assert Source(file, compiler=compiler).build("k", Target("sm_90")).registers


def test_an_error_beside_such_a_comment_is_shown(file):
    file.write_bytes(file.read_bytes().replace(b"ONE + 1;", b"TWO; // Gau\xdf"))
    with pytest.raises(AssayError, match='identifier "TWO" is undefined'):
        Source(file).build("k", Target("sm_90"))
