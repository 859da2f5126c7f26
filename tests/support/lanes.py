"""A kernel of the library, compiled by g++ with threads for lanes (lanes.hpp), launched as its Python launches it."""

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).parents[2]
FLAGS = ("-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-pthread", "-ffp-contract=off")


class Launches:
    """Stands for the compiled source: notes what would be launched."""

    def __init__(self):
        self.all = []

    def __getitem__(self, name):
        def launch(grid, threads, *arguments, shared=0):
            self.all.append((name, grid if isinstance(grid, tuple) else (grid, 1), threads, arguments, shared))

        return launch


def symbol(name):
    return re.sub(r"\W+", "_", name)


def plain(text):
    """A kernel's file with the header that it includes, as ordinary C++."""
    vector = (ROOT / "src/assay/backends/include/assay/vector.cuh").read_text()
    vector = re.sub(r"#include <cuda.*\n|#pragma once\n", "", vector)
    return '#include "lanes.hpp"\n' + text.replace("#include <assay/vector.cuh>", vector)


def built(text, instances, folder):
    """A library of functions. `instances`: for each, the types of its parameters and what the kernel gets of them."""
    for name, (types, passed) in instances.items():
        declared = "".join(f", {kind} v{i}" for i, kind in enumerate(types))
        text += (
            f'extern "C" void {symbol(name)}(unsigned gx, unsigned gy, unsigned threads{declared}) {{\n'
            f"  launch(gx, gy, threads, [=] {{ {name}({passed}); }});\n}}\n"
        )
    (folder / "kernel.cpp").write_text(text)
    command = ["g++", *FLAGS, "-I", Path(__file__).parent, "-o", folder / "kernel.so", folder / "kernel.cpp"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "kernel.so"))


def run(library, launch):
    name, grid, threads, arguments, shared = launch
    assert shared <= 1 << 17
    sizes = (ctypes.c_uint(n) for n in (*grid, threads))
    getattr(library, symbol(name))(*sizes, *map(_converted, arguments))


def _converted(argument):
    if argument is None or isinstance(argument, torch.Tensor):
        return ctypes.c_void_p(0 if argument is None else argument.data_ptr())
    if isinstance(argument, np.float32):
        return ctypes.c_float(argument)
    return ctypes.c_int(int(argument)) if isinstance(argument, np.int32) else ctypes.c_longlong(argument)
