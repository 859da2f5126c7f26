"""Mangled kernel names and what the source called them."""

import ctypes
import ctypes.util
import re
from functools import cache

_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}


def demangle(symbol: str) -> str:
    """`_Z4geluIfLi4EEvPKT_PS0_x` → `void gelu<float, 4>(float const*, float*, long long)`; a C name stays as it is."""
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
    """The name without return type and parameters: `gelu<float, 4>`, spelt one way: `(int)4` and `4` are one."""
    return canonical(_without_parameters(demangle(symbol)))


def canonical(name: str) -> str:
    """One spelling per instance: no casts, no needless blanks, `signed char` and the like kept."""
    name = re.sub(r"\((?:int|bool|unsigned int|long|char)\)", "", name)
    return re.sub(r"\s*([<>,*&])\s*", r"\1", name).replace(",", ", ").strip()


def parameter_types(symbol: str) -> tuple[str, ...] | None:
    """The C++ types of a function's parameters: `("float const*", "float*", "long long")`. None where the symbol does
    not give them, as that of a C function."""
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
    """The parts of a C++ list, separated by the commas that no bracket encloses; None where the brackets do not match.
    A `<` or `>` within other brackets may be an operator, so such a list may not be readable."""
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
    """The C++ runtime has a demangler; every machine with torch has the runtime."""
    for name in ("libstdc++.so.6", ctypes.util.find_library("stdc++")):
        try:
            library = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        if library is not None:
            library.__cxa_demangle.restype = ctypes.c_void_p
            return library
    return None
