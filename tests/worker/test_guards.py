"""Guard bands, leftovers and addresses: what a kernel may not touch is seen when it does, by the parent alone."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.check import leftovers
from assay.check.buffers import Buffers
from assay.dtype import dtype
from assay.kernel import Kernel, address
from assay.worker.bits import bits
from assay.worker.guard import ALIGN, BAND, PATTERNS, inside, outside_damage, room
from assay.worker.request import Call, TensorSpec


def spec(shape, number="float32", offset=0, gap=0, name="x"):
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * (shape[i + 1] + (gap if i == len(shape) - 2 else 0))
    return TensorSpec(name, number, tuple(shape), tuple(strides), offset)


def call(inputs, outputs, returns):
    kernel = Kernel(address("op/torch"), None, returns=returns)
    return Call(kernel, "op", "", "fp32", "native", {}, tuple(inputs), tuple(outputs), (), 0, {}, {})


class Shared:
    """Buffers, and the memory they lie in as a kernel sees it."""

    def __init__(self, inputs, outputs=(), places=1, returns=False):
        def memory(size):
            self.memory = memoryview(bytearray(size))
            return self.memory

        self.buffers = Buffers(call(inputs, outputs, returns), places, memory)
        self.all = {s.name: s for s in (*inputs, *outputs)}

    def buffer(self, name, place=0):
        where, at = room(self.all[name]), self.buffers.places[name][place]
        return torch.frombuffer(self.memory, dtype=torch.uint8, count=where.size, offset=at)

    def tensor(self, name, place=0):
        return inside(self.buffer(name, place), self.all[name])

    def called(self, name="out"):
        """Do as a worker does when the call returns: copy the output."""
        where, at = room(self.all[name]), self.buffers.copies[name]
        raw = self.buffer(name)[where.start : where.end].numpy().tobytes()
        self.memory[at : at + where.span] = raw


@given(
    st.lists(st.integers(0, 9), min_size=0, max_size=3),
    st.sampled_from(["float32", "bfloat16", "int8"]),
    st.integers(0, 5),
    st.integers(0, 4),
)
@settings(max_examples=150, deadline=None)
def test_tensors_have_the_shape_alignment_and_room_asked_for(shape, number, offset, gap):
    one = spec(shape, number, offset, gap)
    shared, where = Shared([one], places=2), room(one)
    assert list(shared.tensor("x").shape) == shape
    assert where.start % ALIGN == offset * dtype(number).itemsize % ALIGN and where.size % ALIGN == 0
    assert where.start >= BAND and where.size - where.end >= BAND
    first, second = shared.buffers.places["x"]
    assert first % ALIGN == 0 and second == first + where.size
    values = torch.ones(shape).to(dtype(number).torch)
    for pattern in (0, 1):
        shared.buffers.fill("x", 0, values, pattern)
        assert shared.buffers.outside(0, pattern) == ""
        assert shared.buffers.changed(0, {"x": values}) == ""
        assert torch.equal(shared.buffers.held("x", 0), values)


@given(st.integers(1, 40), st.integers(-BAND, BAND - 1))
@settings(max_examples=100, deadline=None)
def test_one_byte_outside_is_seen_and_its_distance_named(count, distance):
    one = spec([count], "uint8")
    shared, where = Shared([one]), room(one)
    shared.buffers.fill("x", 0, torch.full((count,), 3, dtype=torch.uint8), 0)
    at = where.end + distance if distance >= 0 else where.start + distance
    shared.buffer("x")[at] = 0
    words = f"{distance} bytes after" if distance >= 0 else f"{-distance} bytes before"
    around = torch.tensor([PATTERNS[0]], dtype=torch.uint8)
    assert outside_damage(shared.buffer("x"), one, around).startswith(words)
    assert shared.buffers.outside(0, 0).startswith(words)


def test_a_changed_input_is_told_from_a_write_beside_it_and_between_its_rows():
    one = spec([3, 4], gap=2)
    shared, values = Shared([one]), torch.arange(12.0).view(3, 4)
    shared.buffers.fill("x", 0, values, 1)
    shared.tensor("x")[1, 2] = 99
    assert "1 of 12 elements, first at 6" in shared.buffers.changed(0, {"x": values})
    assert shared.buffers.outside(0, 1) == ""
    shared.buffers.fill("x", 0, values, 1)
    shared.buffer("x")[room(one).end + 8] = 1
    assert shared.buffers.outside(0, 1).startswith("8 bytes after") and not shared.buffers.changed(0, {"x": values})
    shared.buffers.fill("x", 0, values, 1)
    shared.buffer("x")[room(one).start + 4 * 4 + 1] = 1
    assert "between the rows of `x` (1 bytes" in shared.buffers.outside(0, 1)


def test_bits_of_an_input_count_not_values():
    values = torch.tensor([0.0, float("nan")])
    shared = Shared([spec([2])])
    shared.buffers.fill("x", 0, values, 0)
    shared.tensor("x")[0] = -0.0
    assert "first at 0" in shared.buffers.changed(0, {"x": values})
    shared.buffers.fill("x", 0, values, 0)
    bits(shared.tensor("x"))[1] += 1
    assert "first at 1" in shared.buffers.changed(0, {"x": values})


@pytest.mark.parametrize("gap", [0, 3])
def test_a_result_is_what_stood_there_when_the_call_returned_and_later_changes_are_seen(gap):
    shared = Shared([spec([3, 4])], [spec([3, 4], gap=gap, name="out")])
    shared.buffers.fill("out", 0, torch.zeros(3, 4), 0)
    shared.tensor("out").copy_(torch.arange(12.0).view(3, 4))
    shared.called()
    results = shared.buffers.results()
    assert torch.equal(results["out"], torch.arange(12.0).view(3, 4))
    assert shared.buffers.later(0, results) == ""
    shared.tensor("out")[2, 1] = -1
    assert "1 of 12 elements of `out`, first at 9" in shared.buffers.later(0, results)


NAMES = ["fp64", "fp32", "bf16", "fp16", "int8", "uint8", "int32", "int64"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", leftovers.KINDS)
def test_leftovers_have_the_tensors_form_and_differ_from_run_to_run(kind, name):
    number, rng = dtype(name), random.Random(1)
    right = (torch.arange(60) % 7).to(number.torch).view(5, 12)
    other = right.flip(0).contiguous()
    held = [leftovers.before(kind, [5, 12], number, rng, right, other) for _ in range(6)]
    for one in held:
        assert one.dtype == number.torch and list(one.shape) == [5, 12]
        if kind == "random" and number.itemsize == 1:
            assert not bool(leftovers.kept(right, one).any()), "an element left alone would be right"
    if kind in ("nan", "number", "random", "shuffled"):
        assert len({bytes(bits(one).contiguous().view(torch.uint8).flatten().tolist()) for one in held}) > 1
    if kind == "nan" and number.is_float:
        canonical = bits(torch.tensor([float("nan")], dtype=number.torch))
        for one in held:
            assert bool(one.isnan().all()) and not bool((bits(one) == canonical).any())
    if kind == "shuffled":
        assert all(torch.equal(one.flatten().sort().values, right.flatten().sort().values) for one in held)


def test_empty_and_scalar_outputs_have_leftovers_too():
    for kind in leftovers.KINDS:
        for shape in ([], [0, 3]):
            right = torch.zeros(shape)
            held = leftovers.before(kind, shape, dtype("fp32"), random.Random(2), right, right)
            assert list(held.shape) == shape


@given(st.integers(1, 40), st.integers(0, 3), st.integers(1, 64), st.integers(0, 1))
@settings(max_examples=60, deadline=None)
def test_a_copy_of_what_lies_behind_an_input_is_no_longer_what_lay_behind_the_output(count, offset, beyond, pattern):
    """A kernel that goes on past the end reads the same byte everywhere, and many functions keep it: ReLU of NaN."""
    x, out = spec([count], "uint8", offset), spec([count], "uint8", offset, name="out")
    shared, zeros = Shared([x], [out]), torch.zeros(count, dtype=torch.uint8)
    shared.buffers.fill("x", 0, zeros, pattern)
    shared.buffers.fill("out", 0, zeros, pattern)
    assert shared.buffers.outside(0, pattern) == ""
    end = room(out).end
    shared.buffer("out")[end : end + 8 * beyond] = shared.buffer("x")[end : end + 8 * beyond]
    assert "`out`" in shared.buffers.outside(0, pattern)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.integers(0, 3), st.integers(0, 1))
@settings(max_examples=60, deadline=None)
def test_noise_around_and_between_the_rows_of_an_output_is_known_again(shape, gap, pattern):
    shared = Shared([], [spec(shape, gap=gap, name="out")])
    shared.buffers.fill("out", 0, torch.ones(shape), pattern)
    assert shared.buffers.outside(0, pattern) == ""
    assert torch.equal(shared.buffers.held("out", 0), torch.ones(shape))
    assert "`out`" in shared.buffers.outside(0, 1 - pattern)


def test_the_two_guard_contents_are_nan_and_a_large_number():
    for pattern, expected in zip(PATTERNS, (lambda v: v.isnan(), lambda v: v.isfinite() & (v.abs() > 10)), strict=True):
        raw = torch.full((8,), pattern, dtype=torch.uint8)
        for number in (torch.float32, torch.bfloat16, torch.float16):
            assert bool(expected(raw.view(number).float()).all())
