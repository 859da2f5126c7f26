"""Hashes the files that a CUDA source includes, since a cached build depends on them too."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_INCLUDE = re.compile(r"""^[ \t]*\#[ \t]*include\b[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>|(.*))""", re.MULTILINE)
_FOLDER = ("-I", "--include-path=")
_FILE = ("-include=", "--pre-include=")
_APART = ("-I", "--include-path", "-include", "--pre-include")


def digest(source: str, file: Path, flags: Sequence[str], system: Path | None) -> str | None:
    """Return a hash of all that a source includes, directly or not, from its own folder and from those that the flags
    name. None if that is unknown: a macro names the file, a file in quotes is not found, or a flag and its value are
    separate words. Files in `system` are not hashed: they change only with the compiler's version."""
    if any(flag.rstrip("=") in _APART for flag in flags):
        return None
    folders = [Path(value) for flag in flags if (value := _value(flag, _FOLDER))]
    own = [f for f in folders if system is None or not f.is_relative_to(system)]
    todo = [(file.parent, source)]
    todo += [(file.parent, f'#include "{value}"') for flag in flags if (value := _value(flag, _FILE))]
    found: dict[Path, str] = {}
    while todo:
        beside, text = todo.pop()
        for name, quoted in _names(text):
            if not name:
                return None
            path = next((p for f in ([beside] if quoted else []) + own if (p := f / name).is_file()), None)
            if path is None and quoted and not (system and (system / name).is_file()):
                return None
            if path is not None and path not in found:
                data = path.read_bytes()
                found[path] = hashlib.sha256(data).hexdigest()
                todo.append((path.parent, data.decode(errors="replace")))
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


def _names(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each file that a text includes, and whether it is in quotes; the name is empty if a macro gives it."""
    for match in _INCLUDE.finditer(text):
        yield match[1] or match[2] or "", bool(match[1])


def _value(flag: str, names: Sequence[str]) -> str:
    return next((flag.removeprefix(name) for name in names if flag.startswith(name)), "")
