"""PTX that is changed before it is assembled, in languages that compile and assemble in one step."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from assay import host
from assay.backends import rewriting

START = """\
import json, sys
from pathlib import Path
from assay.backends import rewriting
from assay.isa.ptx.delays import delayed

seen = []

def change(ptx):
    seen.append(ptx)
    return delayed(ptx)
"""
TRITON = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from assay.backends.triton_tracing import _caching

@triton.jit
def copy(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i))

def built():
    source = ASTSource(copy, {"x": "*fp32", "y": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 64}, {})
    with _caching(copy):
        return triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"]

if sys.argv[2] == "before":
    built()
rewriting.triton(change, Path("own").absolute())
cubin = built()
"""
NUMBA = """
import torch
from numba import cuda
from assay.backends import numba_tracing
from assay.target import Target

@cuda.jit
def turn(x):
    x[cuda.threadIdx.x] = x[31 - cuda.threadIdx.x]

rewriting.numba(change, Path("own").absolute())
with numba_tracing.recording(Target("sm_90")) as launches:
    turn[1, 32](cuda.as_cuda_array(torch.zeros(32)))
cubin = launches[0].artifact.cubin
"""
END = """
Path("k.cubin").write_bytes(cubin)
Path(sys.argv[1]).write_text(json.dumps(seen))
"""


def changed(tmp_path, code, how=""):
    """The PTX that was changed, and the machine code that was made of it."""
    (tmp_path / "run.py").write_text(START + code + END)
    caches = {"ASSAY_CACHE": str(tmp_path / "cache"), "TRITON_CACHE_DIR": str(tmp_path / "cache" / "own")}
    command = [sys.executable, "run.py", "seen.json", how]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env=os.environ | caches)
    code = subprocess.run([host.tool("nvdisasm"), "k.cubin"], cwd=tmp_path, check=True, capture_output=True, text=True)
    return json.loads((tmp_path / "seen.json").read_text()), code.stdout


needs_nvdisasm = pytest.mark.skipif(host.tool("nvdisasm") is None, reason="no nvdisasm")


@pytest.mark.slow
@needs_nvdisasm
@pytest.mark.parametrize("how", ["", "before"])
def test_triton(tmp_path, how):
    """Also where it was built before, and the result is on disk. Nothing changed is left there."""
    (ptx,), code = changed(tmp_path, TRITON, how)
    assert "st.global" in ptx and "nanosleep" not in ptx and "NANOSLEEP" in code
    kept = [f for f in (tmp_path / "cache").rglob("*") if f.is_file()]
    assert bool(kept) == bool(how) and not any(b"nanosleep" in f.read_bytes() for f in kept)


@pytest.mark.slow
@needs_nvdisasm
def test_numba(tmp_path):
    (ptx,), code = changed(tmp_path, NUMBA)
    assert "st.global" in ptx and "NANOSLEEP" in code


def test_cupy(monkeypatch):
    """Without a driver CuPy compiles nothing: this is what it calls."""
    compiler = SimpleNamespace(
        _compile_using_nvrtc_no_warning=lambda source, *others: (source.encode(), {"f": "_Z1f"}), _use_ptx=False
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=None))
    monkeypatch.setitem(sys.modules, "cupy.cuda", SimpleNamespace(compiler=compiler))
    rewriting.cupy(str.upper)
    assert compiler._compile_using_nvrtc_no_warning("ld.global", ()) == (b"LD.GLOBAL", {"f": "_Z1f"})
    assert compiler._use_ptx and compiler._kernel_cache_backend.load("any") is None
