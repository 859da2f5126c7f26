"""The idx format: MNIST's own. A magic number with the rank, the shape in big-endian words, then the bytes."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from assay.errors import MalformedError

if TYPE_CHECKING:
    import torch

_UNSIGNED_BYTES = 8
_MOST_AXES = 4


def pack(shape: tuple[int, ...], payload: bytes) -> bytes:
    header = struct.pack(f">BBBB{len(shape)}I", 0, 0, _UNSIGNED_BYTES, len(shape), *shape)
    return header + payload


def parse(content: bytes) -> torch.Tensor:
    """A tensor of bytes with the file's shape. MalformedError for what is not such a file."""
    import torch

    if len(content) < 4 or content[:3] != bytes([0, 0, _UNSIGNED_BYTES]) or not 1 <= content[3] <= _MOST_AXES:
        raise MalformedError(f"no idx file of bytes: it begins with {content[:4].hex(' ') or 'nothing'}")
    begin = 4 + 4 * content[3]
    if len(content) < begin:
        raise MalformedError(f"an idx file cut short in its header, after {len(content)} bytes")
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    if len(content) - begin != math.prod(shape):
        raise MalformedError(f"an idx file of shape {shape} with {len(content) - begin} bytes of data")
    if not math.prod(shape):
        return torch.empty(shape, dtype=torch.uint8)
    return torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=begin).reshape(shape)
