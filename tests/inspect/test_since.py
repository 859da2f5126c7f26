"""`inspect since` as a gate: what is different from an older document, and the exit code that says so."""

import json
from dataclasses import replace

import pytest

import assay
from assay import host
from assay.inspect.since import changes
from assay.record import Status
from command import assay as run

pytestmark = pytest.mark.skipif(
    host.tool("nvdisasm") is None or not host.has("cuda.bindings"), reason="no nvdisasm or NVRTC here"
)
KERNEL = """// assay: f<T><<<cdiv(n, 256), 256>>>(x, out, n)
#include <assay/vector.cuh>
template <typename T> __global__ void f(const T* x, T* y, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
"""
CHANGED, BROKEN = KERNEL.replace("= x[i]", "= x[i] + x[i]"), KERNEL.replace("= x[i]", "= z[i]")
NONE = {"ASSAY_STORE": "none"}


@pytest.fixture
def kept(tmp_path):
    """A kernel, and the document of its code."""
    (tmp_path / "f.cu").write_text(KERNEL)
    done = run("inspect", "f.cu", "--op", "gelu", "--summary", "--out", "old.json", cwd=tmp_path, env=NONE)
    assert done.code == 0, done.said
    return tmp_path


def since(folder, *more):
    return run("inspect", "since", "old.json", *more, "--op", "gelu", cwd=folder, env=NONE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "status", "code", "strict"),
    [(KERNEL + "\n", "pass", 0, 0), (CHANGED, "inconclusive", 0, 1), (BROKEN, "fail", 1, 1)],
)
def test_the_exit_code_tells_whether_the_code_changed(kept, text, status, code, strict):
    (kept / "f.cu").write_text(text)
    done = since(kept, "f.cu", "--json")
    assert done.code == code and [r["status"] for r in json.loads(done.out)["records"]] == [status]
    assert since(kept, "f.cu", "--strict").code == strict


def test_a_kernel_that_does_not_compile_any_more_fails_beside_others_that_do(kept):
    (kept / "g.cu").write_text(BROKEN)
    done = since(kept, "f.cu", "g.cu", "--junit", "since.xml")
    assert done.code == 1 and "y[i] = z[i]" in done.said and "the same machine code" in done.said
    assert 'failures="1"' in (kept / "since.xml").read_text()


@pytest.mark.slow
def test_a_kernel_that_the_document_does_not_have_is_skipped(kept):
    (kept / "g.cu").write_text(KERNEL)
    done = since(kept, "f.cu", "g.cu", "--strict")
    assert done.code == 0 and "the older document does not have it" in done.said
    assert since(kept, "g.cu").code == 2, "nothing could be compared"


def test_a_broken_gate_fails_although_the_code_is_the_same():
    (old,) = assay.inspect("gelu/cuda", workload="n=4096,dtype=fp32")
    (failed,) = changes([old], [replace(old, status=Status.FAIL, reason="gate: spills")])
    assert failed.status == "fail" and failed.reason.startswith("gate: spills; the same machine code")


def test_functions_that_the_kernel_launches_under_other_names_are_compared_too():
    (old,) = assay.inspect("gelu/cuda", workload="n=4096,dtype=fp32")
    renamed = replace(old, evidence=old.evidence | {"name": "other<8>"})
    (same,) = changes([old], [renamed])
    assert same.status == "inconclusive" and f"{old.evidence['name']} is now other<8>" in same.reason
    said = [(r.status, r.reason) for r in changes([old], [old, renamed])]
    assert said[1] == ("inconclusive", "other<8> is launched in addition")
    said = [(r.status, r.reason) for r in changes([old, renamed], [old])]
    assert said[1] == ("inconclusive", "other<8> is not launched any more")
