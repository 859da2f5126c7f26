"""Rewrites PTX so that warps wait at random before they access memory that other threads see.

The code computes the same; only the order in which warps and blocks reach their accesses changes. A kernel whose result
then changes has a race: a missing barrier, or blocks that rely on each other's timing."""

from __future__ import annotations

import re
from zlib import crc32

_ACCESS = re.compile(
    r"^[ \t]*(?:@!?%?[\w$]+[ \t]+)?"
    r"(?P<opcode>(?:ld|ldu|st|atom|red|cp|ldmatrix|stmatrix|multimem|mbarrier)(?:\.[\w:]+)+)[ \t\n]",
    re.MULTILINE,
)
_PRIVATE = frozenset(("param", "local", "const"))
"""State spaces that no other thread writes."""
_SPREAD = 0x9E3779B1
"""Knuth's multiplier, which maps numbers that differ little to very different products."""
_MIX = 0x85EBCA77
"""The second prime of xxHash32."""
_ALL = 0xFFFFFFFF
_AMONG = 4096
"""The number of accesses that wait, out of 16384, at a place where warps wait in this launch."""
_HALVED = 8
"""The chance halves whenever a thread has waited 2**8 times: however long a kernel runs, its delays then take little
more than a few milliseconds of a warp, so that one that does not end hangs and is not just slow."""
_BODY = re.compile(r"\.(?:entry|func)\b[^{};]*\{")
_COUNTER = "\n\t.reg .b32 %assay_n; mov.b32 %assay_n, 0;"


def delayed(text: str, still: bool = False) -> str:
    """Return the PTX with delays. With `still`, the same instructions are added but never wait: the control of the
    experiment."""
    place = 0

    def access(found: re.Match[str]) -> str:
        nonlocal place
        if not _PRIVATE.isdisjoint(found["opcode"].replace("::", ".").split(".")):
            return found[0]
        place += 1
        return _wait(place, still, always=found["opcode"].startswith("mbarrier.init")) + found[0]

    changed = _ACCESS.sub(access, text)
    return _BODY.sub(lambda body: body[0] + _COUNTER, changed) if place else text


def _wait(place: int, still: bool, always: bool = False) -> str:
    """Return code that waits for up to 16 microseconds with probability 1/4, at a quarter of all places, which change
    from launch to launch: a race shows when one access is late and few others are. With `always` it waits in every
    launch: a barrier is initialised once, before all that it orders."""
    return (
        "{ .reg .b64 %assay_g; .reg .b32 %assay_a, %assay_t, %assay_l, %assay_c; .reg .pred %assay_p; "
        "mov.u64 %assay_g, %gridid; cvt.u32.u64 %assay_a, %assay_g; "
        "mov.u32 %assay_t, %globaltimer_lo; shr.u32 %assay_t, %assay_t, 20; add.u32 %assay_a, %assay_a, %assay_t; "
        f"mad.lo.u32 %assay_a, %assay_a, {_SPREAD}, {crc32(str(place).encode())}; "
        f"shr.u32 %assay_t, %assay_a, 15; xor.b32 %assay_a, %assay_a, %assay_t; mul.lo.u32 %assay_a, %assay_a, {_MIX}; "
        f"mov.u32 %assay_l, {0 if still else _AMONG}; "
        f"shr.u32 %assay_t, %assay_n, {_HALVED}; shr.u32 %assay_l, %assay_l, %assay_t; "
        f"mov.u32 %assay_t, %clock; mul.lo.u32 %assay_t, %assay_t, {_SPREAD}; "
        "shr.u32 %assay_c, %assay_t, 18; setp.lt.u32 %assay_p, %assay_c, %assay_l; "
        f"setp.le.and.u32 %assay_p, %assay_a, {_ALL if always else _ALL >> 2}, %assay_p; "
        "shr.u32 %assay_t, %assay_t, 2; and.b32 %assay_t, %assay_t, 16380; "
        "@%assay_p nanosleep.u32 %assay_t; @%assay_p add.u32 %assay_n, %assay_n, 1; }\n"
    )
