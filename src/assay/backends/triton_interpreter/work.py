"""Counts what the interpreter does in a call. Unlike its time, this does not depend on how busy the machine is."""

from __future__ import annotations

_ELEMENTS = 2048
"""The elements that take about as long as the overhead of an operation."""
done = 0
"""Operations on blocks, those on large blocks counted several times."""
programs = 0
"""The most programs of one launch."""


def watch() -> None:
    """Start counting from 0."""
    global done, programs
    done = programs = 0


def add(elements: int) -> None:
    """Count an operation whose result has so many elements."""
    global done
    done += 1 + elements // _ELEMENTS


def launched(count: int) -> None:
    global programs
    programs = max(programs, count)
