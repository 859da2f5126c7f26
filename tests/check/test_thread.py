"""One of the calls of a workload comes from a thread other than the one that imported the kernel's file."""

import pytest

import assay

SOURCE = """
import threading
import torch
from assay import kernel

_HERE = threading.local()
_HERE.ready = True

@kernel("relu", backend="torch", variant="kept")
def kept(x, *, out):
    {body}
"""
BODIES = {
    "wrong": ("torch.clamp(x, min=0.0 if hasattr(_HERE, 'ready') else -1.0, out=out)", "unstable"),
    "raises": ("_HERE.ready; torch.relu(x); torch.clamp(x, min=0.0, out=out)", "exception"),
}
SAID = "called from another thread than the one that imported its file"


def checked(folder, body):
    file = folder / "kept.py"
    file.write_text(SOURCE.format(body=body))
    (record,) = assay.check(file, dtypes="fp32", workloads=12)
    return record


@pytest.mark.parametrize("what", BODIES)
def test_a_kernel_that_is_right_in_one_thread_alone_fails(tmp_path, what):
    body, detector = BODIES[what]
    record = checked(tmp_path, body)
    assert record.evidence["detector"] == detector and SAID in record.reason


def test_the_thread_alone_is_blamed(tmp_path):
    reason = checked(tmp_path, BODIES["wrong"][0]).reason
    assert "address" not in reason and "order" not in reason


def test_a_kernel_that_keeps_something_for_each_thread_passes(tmp_path):
    body = "_HERE.__dict__.setdefault('scratch', torch.empty(0)); torch.clamp(x, min=0.0, out=out)"
    assert checked(tmp_path, body).status == "pass"
