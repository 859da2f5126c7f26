"""Codes of a few bits, packed into bytes without gaps.

The rule: code i of width W takes bits i · W … i · W + W − 1 of the stream, lowest bit first; bit b of the stream is bit
b mod 8 of byte ⌊b / 8⌋, where bit 0 is the lowest. So codes of 8, 16 and 32 bits are little-endian integers. Unused
bits of the last byte are zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


def packed_bytes(count: int, width: int) -> int:
    """Return the bytes that `count` codes of `width` bits take."""
    return -(-count * width // 8)


def pack(codes: Tensor, width: int) -> Tensor:
    """Pack int64 codes from 0 to 2^width − 1, width from 1 to 32, into uint8 bytes."""
    count = codes.numel()
    # Eight codes fill `width` whole bytes, so all groups of eight have the same layout and are handled at once.
    eights = torch.nn.functional.pad(codes.flatten(), (0, -count % 8)).view(-1, 8)
    made = codes.new_zeros(eights.shape[0], width)
    for place in range(8):
        first, shift = divmod(place * width, 8)
        shifted = eights[:, place] << shift
        for byte in range(first, first + packed_bytes(1, shift + width)):
            made[:, byte] |= shifted >> 8 * (byte - first) & 255
    return made.to(torch.uint8).flatten()[: packed_bytes(count, width)]


def unpack(stream: Tensor, width: int, count: int) -> Tensor:
    """Return the `count` codes that were packed into these bytes, as int64."""
    eights = (
        torch.nn.functional.pad(stream.flatten(), (0, -(-count // 8) * width - stream.numel())).view(-1, width).long()
    )
    made = eights.new_empty(eights.shape[0], 8)
    for place in range(8):
        first, shift = divmod(place * width, 8)
        bits = eights[:, first]
        for byte in range(first + 1, first + packed_bytes(1, shift + width)):
            bits = bits | eights[:, byte] << 8 * (byte - first)
        made[:, place] = bits >> shift & 2**width - 1
    return made.flatten()[:count]


def from_twos_complement(codes: Tensor, width: int) -> Tensor:
    """Return the signed integers of two's complement codes from 0 to 2^width − 1."""
    half = 2 ** (width - 1)
    return (codes ^ half) - half


def twos_complement(integers: Tensor, width: int) -> Tensor:
    return integers.long() & 2**width - 1
