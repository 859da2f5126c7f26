"""Memory that ends where a tensor ends: the geometry for any tensor, and on a GPU a kernel that reads too far."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.dtype import dtype
from assay.worker import fence
from assay.worker.guard import inside, room
from assay.worker.request import TensorSpec

PAGE = 1 << 21
SPECS = st.builds(
    lambda number, rows, cols, gap, offset: TensorSpec(
        "x", dtype(number).torch_name, (rows, cols), (cols + gap, 1), offset
    ),
    st.sampled_from(["fp32", "bf16", "fp16", "int8", "int64"]),
    st.integers(0, 40),
    st.integers(0, 300),
    st.sampled_from([0, 3]),
    st.integers(0, 7),
)


class Counted(fence.Chunk):
    """Addresses are counted from 0 in ordinary memory of as many bytes."""

    def tensor(self, at, size):
        assert at >= 0 and at + size <= self.size, "all of it has memory"
        return torch.zeros(self.size, dtype=torch.uint8)[at : at + size]


def address(value):
    return value.storage_offset() * value.element_size()


@given(SPECS)
def test_less_than_16_bytes_lie_between_the_end_of_a_tensor_and_the_fence(spec):
    where, itemsize = room(spec), spec.itemsize
    buffer, left_off = Counted(0, PAGE).behind(where.start + max(where.span, itemsize))
    found = inside(buffer, spec, left_off)
    assert left_off == 0
    assert address(found) % fence._ALIGN == where.start % fence._ALIGN, "as aligned as elsewhere"
    assert 0 <= PAGE - (address(found) + max(where.span, itemsize)) < fence._ALIGN


@given(SPECS)
def test_less_than_16_bytes_lie_between_the_fence_and_the_begin_of_a_tensor(spec):
    where = room(spec)
    buffer, left_off = Counted(0, PAGE).before(where.start, where.size)
    found = inside(buffer, spec, left_off)
    assert address(found) == where.start % fence._ALIGN
    assert buffer.numel() == where.size - left_off, "the band behind it is there"


def test_no_fence_for_a_huge_buffer_or_where_there_is_no_driver(monkeypatch):
    monkeypatch.setattr(fence.ctypes, "CDLL", lambda _: type("Driver", (), {"cuCtxGetDevice": lambda *_: 1})())
    fences = fence.Fences()
    assert fences.take(1000) is None, "the driver refuses"
    assert fences.take(fence.MOST + 1) is None


WRONG = """
import triton, triton.language as tl
from assay import kernel

@triton.jit
def _gelu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, (0.5 * v * (1 + tl.erf(v.to(tl.float32) * 0.7071067811865476))).to(y.dtype.element_ty), mask=i < n)

@kernel("gelu")
def reads_too_far(x, *, out):
    _gelu[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), 1024)
"""


@pytest.mark.gpu
def test_a_load_without_a_mask_cannot_run_on_a_gpu(tmp_path):
    file = Path(tmp_path, "reads_too_far.py")
    file.write_text(WRONG)
    for record in assay.check(file):
        assert record.status == "fail" and record.evidence["detector"] == "overread", json.dumps(record.evidence)
        assert "no memory behind" in record.reason
