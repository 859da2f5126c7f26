"""Demangles kernel names into the names used in the source."""

import ctypes
import ctypes.util
import re
from functools import cache

_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}


def demangle(symbol: str) -> str:
    """Demangle `_Z4geluIfLi4EEvPKT_PS0_x` → `void gelu<float, 4>(float const*, float*, long long)`. A C name is
    returned as it is."""
    library = _runtime()
    if library is None or not symbol.startswith("_Z"):
        return symbol
    status = ctypes.c_int()
    pointer = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not pointer:
        return symbol
    try:
        return str(ctypes.string_at(pointer).decode())
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(pointer))


def instance(symbol: str) -> str:
    """Return the name without return type and parameters, `gelu<float, 4>`, in its canonical spelling."""
    return canonical(_without_parameters(demangle(symbol)))


def canonical(name: str) -> str:
    """Return the canonical spelling: without casts (`(int)4` → `4`) and needless blanks; casts such as `(signed char)`
    are kept."""
    name = re.sub(r"\((?:int|bool|unsigned int|long|char)\)", "", name)
    return re.sub(r"\s*([<>,*&])\s*", r"\1", name).replace(",", ", ").strip()


def parameter_types(symbol: str) -> tuple[str, ...] | None:
    """Return the C++ types of a function's parameters: `("float const*", "float*", "long long")`. None if the symbol
    does not give them, as for a C function."""
    text = demangle(symbol)
    if text == symbol or not text.endswith(")"):
        return None
    depth = 0
    for at in range(len(text) - 1, 0, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return parts(text[at + 1 : -1])
    return None


def parts(text: str) -> tuple[str, ...] | None:
    """Split a C++ list at the commas that no bracket encloses; None if the brackets do not match. A `<` or `>` within
    other brackets may be an operator, so such a list may not be readable."""
    if not text.strip():
        return ()
    found, open_, start = list[str](), list[str](), 0
    for at, letter in enumerate(text):
        if letter in _BRACKETS:
            open_.append(_BRACKETS[letter])
        elif open_ and letter == open_[-1]:
            open_.pop()
        elif letter in ")]}":
            return None
        elif letter == "," and not open_:
            found.append(text[start:at].strip())
            start = at + 1
    return None if open_ else (*found, text[start:].strip())


def _without_parameters(text: str) -> str:
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0 and at:
            text = text[:at]
            break
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ">") - (text[at] == "<")
        if text[at] == " " and depth == 0:
            return text[at + 1 :]
    return text


@cache
def _runtime() -> ctypes.CDLL | None:
    """Load the C++ runtime, which contains a demangler; every machine with torch has it."""
    for name in ("libstdc++.so.6", ctypes.util.find_library("stdc++")):
        try:
            library = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        if library is not None:
            library.__cxa_demangle.restype = ctypes.c_void_p
            return library
    return None
