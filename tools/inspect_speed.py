"""How long does inspect take, from source to table, and how does that grow with the code?

python tools/inspect_speed.py            print it
python tools/inspect_speed.py --write    and put it into the docs"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from assay.backends import nvrtc
from assay.inspect.summary import summary
from assay.inspect.table import table
from assay.isa.cubin import functions
from assay.target import DEFAULT

PAGE = Path(__file__).parents[1] / "docs" / "inspect.md"
BEGIN, END = "<!-- tools/inspect_speed.py -->", "<!-- end -->"
SIZES = (100, 500, 2_000, 10_000)
REPEAT = 1


def source(statements: int) -> str:
    """So many instructions that nothing can merge, each on a line of its own, a hundred to a block."""
    lines = []
    for i in range(statements):
        if i % 100 == 99:
            lines.append(f"    if (v == {i}.0f) return;")
        lines.append('    asm volatile("fma.rn.f32 %0, %0, %1, %0;" : "+f"(v) : "f"(s));')
    body = "\n".join(lines)
    head = 'extern "C" __global__ void long_one(const float* x, float* y) {'
    return f"{head}\n    float v = x[0], s = x[1];\n{body}\n    y[0] = v;\n}}\n"


def once(statements: int) -> tuple[int, float, float]:
    """Instructions, seconds of the compiler, seconds from cubin to table and summary."""
    text = source(statements)
    began = time.perf_counter()
    _, ptx, cubin = nvrtc.compile_all(text, "long.cu", (), nvrtc.options(DEFAULT))
    built = time.perf_counter()
    found = table(cubin, "long_one", ptx.decode())
    (function,) = functions(cubin)
    summary(found, function, DEFAULT, 256, 0)
    return len(found.rows), built - began, time.perf_counter() - built


def main() -> None:
    lines = ["| instructions | compiler | table | table, per 1000 |", "|---:|---:|---:|---:|"]
    for size in SIZES:
        runs = [once(size) for _ in range(REPEAT)]
        count = runs[0][0]
        compiler, made = (statistics.median(r[i] for r in runs) for i in (1, 2))
        lines.append(f"| {count:,} | {compiler:.2f} s | {made:.2f} s | {made / count * 1e6:.0f} ms |")
        print(lines[-1], flush=True)
    text = "\n".join(lines)
    if "--write" in sys.argv:
        page = PAGE.read_text()
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
