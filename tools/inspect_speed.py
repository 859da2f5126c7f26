"""Measures how long inspect takes from source to table, and how the time grows with the code.

python tools/inspect_speed.py            print the table
python tools/inspect_speed.py --write    and write it into docs/inspect.md"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from assay.backends import nvrtc
from assay.inspect.code_in import assemble
from assay.inspect.summary import summary
from assay.inspect.table import table
from assay.isa.cubin import functions
from assay.target import DEFAULT

PAGE = Path(__file__).parents[1] / "docs" / "inspect.md"
BEGIN, END = "<!-- tools/inspect_speed.py -->", "<!-- end -->"
SIZES = (100, 500, 2_000, 10_000, 50_000)
REPEAT = 3


def cuda(statements: int) -> tuple[bytes, bytes]:
    """Return PTX and cubin with this many instructions that cannot be merged, each on its own line, a hundred per basic
    block."""
    lines = []
    for i in range(statements):
        if i % 100 == 99:
            lines.append(f"    if (v == {i}.0f) return;")
        lines.append('    asm volatile("fma.rn.f32 %0, %0, %1, %0;" : "+f"(v) : "f"(s));')
    head = 'extern "C" __global__ void long_one(const float* x, float* y) {'
    body = "\n".join([head, "    float v = x[0], s = x[1];", *lines, "    y[0] = v;", "}", ""])
    _, ptx, cubin = nvrtc.compile_all(body, "long.cu", (), nvrtc.options(DEFAULT))
    return ptx, cubin


def ptx(statements: int) -> tuple[bytes, bytes]:
    """Return the same, written as PTX, since NVRTC's own time grows more than linearly with a function's length."""
    lines = []
    for i in range(statements):
        if i % 100 == 99:
            lines.append(f"    setp.eq.f32 p, v, 0f{0x40000000 + i:08x};\n    @p bra done;")
        lines.append(f"    .loc 1 {i + 1} 1\n    fma.rn.f32 v, v, s, v;")
    text = "\n".join(
        [
            ".version 9.0",
            f".target {DEFAULT}",
            ".address_size 64",
            '.file 1 "long.cu"',
            ".visible .entry long_one(.param .u64 x, .param .u64 y) {",
            "    .reg .f32 v, s;\n    .reg .pred p;\n    .reg .b64 a, b;",
            "    ld.param.u64 a, [x];\n    ld.param.u64 b, [y];",
            "    ld.global.f32 v, [a];\n    ld.global.f32 s, [a+4];",
            *lines,
            "done:",
            "    st.global.f32 [b], v;",
            "    ret;",
            "}",
            "",
        ]
    ).encode()
    return text, assemble(text, DEFAULT, "long.ptx")


def once(build: Callable[[int], tuple[bytes, bytes]], statements: int) -> tuple[int, float, float]:
    """Return instructions, seconds of the compiler, and seconds from cubin to table and summary."""
    began = time.perf_counter()
    code, cubin = build(statements)
    built = time.perf_counter()
    listing = table(cubin, "long_one", code.decode())
    (function,) = functions(cubin)
    summary(listing, function, DEFAULT, 256, 0)
    return len(listing.rows), built - began, time.perf_counter() - built


def main() -> None:
    lines = ["| from | instructions | compiler | table | table, per 1000 |", "|---|---:|---:|---:|---:|"]
    for name, build, size in [("CUDA C++", cuda, 500), *(("PTX", ptx, size) for size in SIZES)]:
        runs = [once(build, size) for _ in range(REPEAT)]
        count = runs[0][0]
        compiler, made = (statistics.median(r[i] for r in runs) for i in (1, 2))
        lines.append(f"| {name} | {count:,} | {compiler:.2f} s | {made:.2f} s | {made / count * 1e6:.0f} ms |")
        print(lines[-1], flush=True)
    text = "\n".join(lines)
    if "--write" in sys.argv:
        page = PAGE.read_text()
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
