"""A verdict is about the code as it stands, whatever a compiler kept on disk."""

import sys
from pathlib import Path

import pytest

import assay
from assay.kernel import Address, Kernel
from assay.worker import kept_code, scratch

KERNEL = """
from numba import njit
from helper import f
from assay import kernel
from assay.backends.njit import arrays

@njit(cache=True)
def loop(x, y):
    for i in range(x.size):
        y[i] = f(x[i])

@kernel("relu")
def relu(x, *, out):
    loop(*arrays(x, out))
"""
HELPER = "from numba import njit\n@njit\ndef f(v):\n    return {}\n"
RIGHT, WRONG = "v if v > 0 or v != v else type(v)(0)", "v * 3"


@pytest.mark.slow
def test_a_function_that_numba_kept_is_compiled_anew_when_what_it_calls_has_changed(tmp_path):
    (tmp_path / "relu_njit.py").write_text(KERNEL.replace('"relu")', '"relu", backend="njit")'))
    seen = []
    for body in (RIGHT, WRONG, RIGHT):
        (tmp_path / "helper.py").write_text(HELPER.format(body))
        (record,) = assay.check(tmp_path / "relu_njit.py", dtypes="fp32", workloads=4)
        seen.append(record.status)
    assert seen == ["pass", "fail", "pass"]
    assert not list(tmp_path.rglob("*.nb?")), "nothing is kept beside the user's file"


def test_cupy_keeps_what_it_builds_by_the_headers_that_go_in(tmp_path, monkeypatch):
    compiler = pytest.importorskip("cupy.cuda.compiler")
    usual = type(compiler._kernel_cache_backend)
    monkeypatch.setattr(compiler, "_kernel_cache_backend", usual(str(tmp_path / "usual")))
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(scratch.VARIABLE, str(tmp_path))
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    file = tmp_path / "k.py"
    file.write_text("import launch\n")
    (tmp_path / "launch.py").write_text('SOURCE = "k.cu"\n')

    def folder(include, header):
        (tmp_path / "k.cu").write_text(f"#define NEAR <near.cuh>\n#include {include}\n")
        (tmp_path / "near.cuh").write_text(f"constexpr int ONE = {header};\n")
        kept_code.forget(Kernel(Address("relu", "cupy"), file))
        return Path(compiler._kernel_cache_backend._cache_dir)

    first, edited, again = (folder('"near.cuh"', number) for number in (1, 2, 1))
    assert first == again != edited and {first.parent, edited.parent} == {tmp_path / "cache" / "assay" / "cupy"}
    unknown = folder("NEAR", 1)
    assert unknown.parent == tmp_path and not list(unknown.iterdir()), "where a macro names it, nothing is known"


def test_where_cupy_keeps_nothing_it_goes_on_to_keep_nothing(tmp_path, monkeypatch):
    compiler = pytest.importorskip("cupy.cuda.compiler")
    nothing = object()
    monkeypatch.setattr(compiler, "_kernel_cache_backend", nothing)
    monkeypatch.setenv(scratch.VARIABLE, str(tmp_path))
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    (tmp_path / "k.py").write_text("")
    kept_code.forget(Kernel(Address("relu", "cupy"), tmp_path / "k.py"))
    assert compiler._kernel_cache_backend is nothing
