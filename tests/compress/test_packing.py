"""Codes of any width are packed into bytes without gaps, the first in the lowest bits."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.compress.formats.packing import from_twos_complement, pack, packed_bytes, twos_complement, unpack


def rows(width, most=40):
    return st.lists(st.integers(0, 2**width - 1), max_size=most)


@given(st.integers(1, 32).flatmap(lambda width: st.tuples(st.just(width), rows(width))))
@settings(max_examples=200)
def test_the_bytes_are_those_of_one_large_integer(drawn):
    width, codes = drawn
    stream = sum(code << i * width for i, code in enumerate(codes))
    size = packed_bytes(len(codes), width)
    made = pack(torch.tensor(codes, dtype=torch.int64), width)
    assert made.dtype == torch.uint8 and bytes(made.tolist()) == stream.to_bytes(size, "little")
    assert size == (len(codes) * width + 7) // 8
    assert unpack(made, width, len(codes)).tolist() == codes


@pytest.mark.parametrize(("width", "dtype"), [(8, torch.uint8), (16, torch.int16), (32, torch.int32)])
def test_codes_of_whole_bytes_are_little_endian_integers(width, dtype):
    codes = torch.arange(0, 2**width, 2**width // 77)
    assert torch.equal(pack(codes, width), codes.to(dtype).view(torch.uint8))


@given(st.integers(1, 32).flatmap(lambda w: st.tuples(st.just(w), st.integers(-(2 ** (w - 1)), 2 ** (w - 1) - 1))))
def test_twos_complement_reads_back(drawn):
    width, integer = drawn
    code = twos_complement(torch.tensor([float(integer)], dtype=torch.float64), width)
    assert code.item() == integer % 2**width
    assert from_twos_complement(code, width).item() == integer
