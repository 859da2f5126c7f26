"""Data types, state spaces and vector lengths: the words after the dots."""

import re
from functools import lru_cache

LINKAGE = (".visible", ".extern", ".weak", ".common")
_SPACES = ("global", "shared", "local", "const", "param", "tex", "sreg", "reg")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_TYPE = re.compile(
    r"[bus](?:1|2|4|8|16|32|64|128|1024)(?:x[24])?|b(?:8|6|4)x16(?:_p\d+)?|(?:b|t)?f(?:16|32|64)(?:x2)?|u?e\dm\d(?:x[24])?"
    r"|pred|texref|samplerref|surfref",
    re.ASCII,
)
_BITS = re.compile(r"[a-z]+(\d+)(?:x(\d))?", re.ASCII)


@lru_cache(maxsize=8192)
def is_type(word: str) -> bool:
    """Return whether the word is a data type: `f32`, `bf16x2`, `pred`."""
    return _TYPE.fullmatch(word) is not None


def is_space(word: str) -> bool:
    """Return whether the word names a memory: `global`, `shared::cta`."""
    return word.partition("::")[0] in _SPACES


@lru_cache(maxsize=8192)
def types(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(is_type, words))


@lru_cache(maxsize=8192)
def spaces(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(is_space, words))


def vector(words: tuple[str, ...]) -> int:
    """Return the number of elements: 4 for `v4`, 1 if no word gives it."""
    return next((_VECTORS[w] for w in words if w in _VECTORS), 1)


def bits(type_: str) -> int:
    """Return the bits of one element; 0 for a type without a size."""
    match = _BITS.fullmatch(type_)
    return int(match[1]) * int(match[2] or 1) if match else 0
