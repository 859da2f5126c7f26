"""Reads source files. One that is not a readable source is refused, with the reason, before it is read."""

import ast
import codecs
import contextlib
import io
import re
import stat
import tokenize
from pathlib import Path

from assay import host, syntax
from assay.errors import SourceError, UsageError

_INCLUDE = re.compile(r"^\s*#\s*include\s*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
MOST = 8 << 20
"""The most bytes of a source: a larger file is data, named by mistake."""
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a disk"),
    (stat.S_ISSOCK, "a socket"),
)
_WIDE = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def contents(file: Path) -> bytes:
    """Return the bytes of a regular file of reasonable size."""
    try:
        about = file.stat()
    except FileNotFoundError:
        if file.is_symlink():
            raise UsageError(
                f"{file} is a link to {file.readlink()}, which is not there", fix="name the file itself"
            ) from None
        raise UsageError(
            f"no file called {file}", fix="check the path; kernels of the library are named like gelu/triton"
        ) from None
    except (OSError, ValueError) as problem:
        raise _unreadable(file, problem) from None
    if stat.S_ISDIR(about.st_mode):
        raise UsageError(f"{file} is a folder, not a file", fix=f"name the files in it: {file}/*.py")
    if kind := next((name for test, name in _KINDS if test(about.st_mode)), ""):
        raise UsageError(f"{file} is {kind}, not a file", fix="save the source in a file and name that")
    if about.st_size > MOST:
        raise UsageError(
            f"{file} holds {about.st_size / 1e6:.0f} MB, which is more than any kernel's source",
            fix=f"name a Python or CUDA source of at most {MOST >> 20} MB",
        )
    try:
        return file.read_bytes()
    except OSError as problem:
        raise _unreadable(file, problem) from None


def text(file: Path) -> str:
    """Return a Python source as Python itself decodes it: as UTF-8, or as its coding line says."""
    data = contents(file)
    _refuse_binary(file, data)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as problem:
        if "unknown encoding" in str(problem):
            raise SourceError(
                str(problem), where=f"{file}:1", fix="name one that Python knows: # -*- coding: utf-8 -*-"
            ) from None
        encoding = "utf-8"
    try:
        decoded = data.decode(encoding)
    except UnicodeDecodeError as problem:
        raise SourceError(
            f"byte 0x{data[problem.start]:02x} is no {encoding} text",
            where=f"{file}:{_line(data, problem.start)}",
            fix="save it as UTF-8, or name its encoding in the first line, e.g. # -*- coding: latin-1 -*-",
        ) from None
    return io.IncrementalNewlineDecoder(None, translate=True).decode(decoded, final=True)


def cuda_text(file: Path) -> str:
    """Return a CUDA source. Its comments may be in any encoding; the code that a compiler reads is ASCII."""
    data = contents(file)
    _refuse_binary(file, data)
    return data.decode("utf-8-sig", errors="replace")


def parse(file: Path) -> ast.Module:
    """Return the syntax tree of a Python source."""
    source = text(file)
    try:
        return syntax.module(source, str(file))
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise SourceError(
            f"{error.msg}: {line}", where=f"{file}:{error.lineno}", fix="fix the syntax and try again"
        ) from None
    except (RecursionError, MemoryError):
        raise SourceError(
            "an expression is nested too deeply for Python's parser", where=str(file), fix="split it into several"
        ) from None


def _refuse_binary(file: Path, data: bytes) -> None:
    if wide := next((name for mark, name in _WIDE if data.startswith(mark)), ""):
        raise SourceError(f"this is {wide} text", where=str(file), fix="save it as UTF-8")
    if (at := data.find(b"\0")) >= 0:
        if sum(byte < 9 for byte in data[:1024]) > 16:
            raise SourceError("this is a binary file", where=str(file), fix="name a Python or CUDA source")
        raise SourceError(
            "a NUL byte is in the text", where=f"{file}:{_line(data, at)}", fix="remove it, or save the file anew"
        )


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _unreadable(file: Path, problem: OSError | ValueError) -> UsageError:
    reason = problem.strerror if isinstance(problem, OSError) else str(problem)
    shown = str(file).replace("\0", "\\0")
    shown = shown if len(shown) < 200 else f"{shown[:100]}…{shown[-40:]}"
    return UsageError(f"{shown} cannot be read: {reason}", fix="check the path and who may read it")


def named_by(file: Path) -> list[Path]:
    """Return the .cu files that a Python file names, and the one of its own name."""
    try:
        text = file.read_text()
    except (OSError, ValueError):
        return []
    named = [file.parent / m for m in re.findall(r"[\"']([\w./-]+\.cuh?)[\"']", text)]
    return [f for f in dict.fromkeys([*named, file.with_suffix(".cu")]) if f.is_file()]


def with_headers(cuda: Path) -> list[Path]:
    """Return a CUDA source and the headers of its own that it includes, directly or not: those whose place is given
    relative to it, or in a folder of the command line (`-I`)."""
    found = [cuda]
    for one in found:
        with contextlib.suppress(OSError, ValueError):
            for name in _INCLUDE.findall(one.read_text(encoding="utf-8-sig", errors="replace")):
                path = next((p for f in (one.parent, *host.include_folders()) if (p := f / name).is_file()), None)
                found += [path] if path and path not in found else []
    return found


def module_file(file: Path, module: str, level: int, within: Path) -> Path | None:
    """Return the file of a module that a Python file imports, if it is in the folder `within`."""
    path = Path(*module.split(".")).with_suffix(".py")
    folders = file.parents[level - 1 : level] if level else file.parents
    return next((f / path for f in folders if (f / path).is_relative_to(within) and (f / path).is_file()), None)


def imported_by(file: Path) -> list[Path]:
    """Return the modules that a Python file imports, directly or not, from its folder and from folders beside that."""
    todo, within = [file], file.parent.parent
    found: dict[Path, None] = {}
    while todo:
        one = todo.pop()
        try:
            nodes = list(ast.walk(parse(one)))
        except (SourceError, UsageError):
            continue
        named = [(alias.name, 0) for n in nodes if isinstance(n, ast.Import) for alias in n.names]
        for n in nodes:
            if isinstance(n, ast.ImportFrom):
                modules = [n.module] if n.module else [alias.name for alias in n.names]
                named += [(module, n.level) for module in modules]
        paths = [module_file(one, module, level, within) for module, level in named]
        new = [path for path in paths if path and path not in found]
        found |= dict.fromkeys(new)
        todo += new
    return [path for path in found if path != file]


def texts(file: Path | None, headers: Path) -> list[str]:
    """Return the text of a kernel's file, of the modules that it imports from beside it, of the .cu files that these
    name, and of what those include from beside them, from a folder of the command line (`-I`) or from `headers`, as far
    as they can be read."""
    own = [file, *(imported_by(file) if file.suffix == ".py" else [])] if file else []
    todo, found = [*own, *(named for one in own for named in named_by(one))], {}
    while todo:
        one = todo.pop()
        if one in found:
            continue
        found[one] = ""
        with contextlib.suppress(OSError, ValueError):
            found[one] = one.read_text(encoding="utf-8-sig", errors="replace")
        for name in _INCLUDE.findall(found[one]):
            todo += [
                path for path in (f / name for f in (one.parent, *host.include_folders(), headers)) if path.is_file()
            ]
    return list(found.values())
