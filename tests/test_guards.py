"""Guard bands, poison and addresses: what a kernel may not touch is seen when it does."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.dtype import dtype
from assay.worker.guard import BAND, PATTERNS, Guarded


def guarded(shape, number="float32", offset=0, gap=0):
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * (shape[i + 1] + (gap if i == len(shape) - 2 else 0))
    return Guarded({"name": "x", "dtype": number, "shape": shape, "strides": strides, "offset": offset}, "cpu")


@given(
    st.lists(st.integers(0, 9), min_size=0, max_size=3),
    st.sampled_from(["float32", "bfloat16", "int8"]),
    st.integers(0, 5),
    st.integers(0, 4),
)
@settings(max_examples=150, deadline=None)
def test_tensors_have_the_shape_alignment_and_room_asked_for(shape, number, offset, gap):
    g = guarded(shape, number, offset, gap)
    assert list(g.tensor.shape) == shape
    if g.tensor.numel():
        assert g.tensor.data_ptr() % 256 == offset * g.tensor.element_size()
    assert g.start >= BAND and g.buffer.numel() - g.end >= BAND
    for pattern in (0, 1):
        g.fill_bands(pattern)
        g.tensor.zero_()
        assert g.band_damage(pattern) == "" or gap
        g.put(torch.ones(shape).to(g.tensor.dtype))
        assert g.input_damage() == ("", "")


@given(st.integers(1, 40), st.integers(-BAND, BAND - 1))
@settings(max_examples=100, deadline=None)
def test_one_byte_outside_is_seen_and_its_distance_named(count, distance):
    g = guarded([count], "uint8")
    g.fill_bands(0)
    g.tensor.fill_(3)
    at = g.end + distance if distance >= 0 else g.start + distance
    g.buffer[at] = 0
    where = f"{distance} bytes after" if distance >= 0 else f"{-distance} bytes before"
    assert g.band_damage(0).startswith(where)


def test_a_changed_input_is_told_from_a_write_beside_it():
    g = guarded([3, 4], gap=2)
    g.fill_bands(1)
    g.put(torch.arange(12.0).view(3, 4))
    g.tensor[1, 2] = 99
    assert "element 8 in memory" in g.input_damage()[0]
    g.put(torch.arange(12.0).view(3, 4))
    g.buffer[g.end + 8] = 1
    assert g.input_damage()[1].startswith("8 bytes after")


@pytest.mark.parametrize("name", ["fp64", "fp32", "bf16", "fp16", "int8", "uint8", "int32", "int64"])
def test_poison_is_no_number_an_honest_kernel_writes_and_differs_between_runs(name):
    d = dtype(name)
    g = guarded([5], d.torch_name)
    seen = set()
    for poison in d.poisons:
        g.poison(poison)
        bits = g.tensor.view(g.bits)[0].item() & ((1 << 8 * d.itemsize) - 1)
        assert bits == poison
        seen.add(bits)
    assert len(seen) == len(d.poisons) == 3
    canonical = torch.tensor(float("nan"), dtype=d.torch).view(g.bits).item() if d.is_float else None
    assert canonical not in seen


def test_the_two_guard_contents_are_nan_and_a_large_number():
    for pattern, expected in zip(PATTERNS, (lambda v: v.isnan(), lambda v: v.isfinite() & (v.abs() > 10)), strict=True):
        raw = torch.full((8,), pattern, dtype=torch.uint8)
        for number in (torch.float32, torch.bfloat16, torch.float16):
            assert bool(expected(raw.view(number).float()).all())
