"""Files that are fetched once and kept: named, with the SHA-256 of their content, and with where they can be had."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from assay import host
from assay.errors import Lacking
from assay.models.subject import atomic

Tell = Callable[[str], None]
"""Told what is being done, and what was found wrong."""

CACHE = "the local cache"


def silent(text: str) -> None:
    """Nobody listens."""


class Unavailable(Exception):
    """A source that cannot give what is asked, in a few words why."""


@dataclass(frozen=True)
class File:
    name: str
    """In the cache. What ends in .gz is kept compressed; hash and size are of the content."""
    sha256: str
    size: int
    """Bytes."""

    def unpacked(self, stored: bytes) -> bytes:
        """The content, of the right size and hash; raises Unavailable, saying what is wrong, for any other."""
        content = stored
        if self.name.endswith(".gz"):
            try:
                content = gzip.decompress(stored)
            except (OSError, EOFError, zlib.error) as problem:
                raise Unavailable(f"{self.name} is no whole gzip file ({problem})") from None
        self.verify(content)
        return content

    def packed(self, content: bytes) -> bytes:
        return gzip.compress(content, 6, mtime=0) if self.name.endswith(".gz") else content

    def verify(self, content: bytes) -> None:
        if len(content) != self.size:
            raise Unavailable(f"{self.name} has {len(content)} bytes, not {self.size}")
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise Unavailable(f"{self.name} has SHA-256 {found[:12]}…, not {self.sha256[:12]}…")


class Source(Protocol):
    """A place that may have an asset's files. `str()` names it for the reader."""

    def fetch(self, files: Sequence[File]) -> dict[str, bytes]:
        """The content of each, by name; it is verified by whoever asked. Raises Unavailable."""
        ...


@dataclass(frozen=True)
class Asset:
    name: str
    folder: str
    """Below the data folder."""
    files: tuple[File, ...]
    sources: tuple[Source, ...]
    """In the order they are tried."""

    @property
    def place(self) -> Path:
        return host.data_folder() / self.folder

    def file(self, name: str) -> File:
        return next(f for f in self.files if f.name == name)

    def here(self) -> bool:
        """Are all files in the cache? Their content is verified when they are read."""
        return all((self.place / f.name).is_file() for f in self.files)

    def read(self, name: str, tell: Tell = silent) -> bytes:
        """The verified content of one file: from the cache, else all that is missing is fetched first."""
        file = self.file(name)
        try:
            return file.unpacked((self.place / name).read_bytes())
        except (Unavailable, OSError):
            self.ensure(tell)
        return file.unpacked((self.place / name).read_bytes())

    def ensure(self, tell: Tell = silent) -> str:
        """Put every file into the cache, verified, and say where they came from. What is whole stays as it is; when
        nothing can be had, so does the rest."""
        wanted = self._lacking(tell)
        if not wanted:
            return CACHE
        tried = []
        for source in self.sources:
            tell(f"{self.name}: trying {source}")
            try:
                found = source.fetch(wanted)
                for file in wanted:
                    file.verify(found[file.name])
            except Unavailable as why:
                tried.append(f"{source}: {why}")
                continue
            for file in wanted:
                atomic.write(self.place / file.name, file.packed(found[file.name]))
            return str(source)
        raise Lacking(self._nowhere(wanted, tried), fix=self._fix())

    def _lacking(self, tell: Tell) -> list[File]:
        lacking = []
        for file in self.files:
            path = self.place / file.name
            try:
                file.unpacked(path.read_bytes())
            except FileNotFoundError:
                lacking.append(file)
            except (Unavailable, OSError) as why:
                tell(f"{path} is damaged: {why}; fetching it again")
                lacking.append(file)
        return lacking

    def _nowhere(self, wanted: Iterable[File], tried: Sequence[str]) -> str:
        damaged = [f.name for f in wanted if (self.place / f.name).exists()]
        state = f"damaged in {self.place}: {', '.join(damaged)}" if damaged else f"not in {self.place}"
        return "\n    ".join([f"{self.name} cannot be had. It is {state}; tried:", *tried])

    def _fix(self) -> str:
        return (
            f"on a machine that reaches one of them: `assay model fetch {self.name}`, then carry its files with "
            "tools/weights.py (docs/models.md), or put them into that folder yourself; they are verified when read"
        )
