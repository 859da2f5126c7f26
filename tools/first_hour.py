"""Times the commands of a newcomer's first hour, each as a ratio to a bare `import torch` in the same run.

    python tools/first_hour.py [--repeat 3]

Ratios are more robust than seconds on a busy machine. The best of several repetitions counts, so that the figure is the
time of the command itself, not of the machine's other load."""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TORCH = "python -c 'import torch'"
COMMANDS = {
    # command: the most seconds it should take on two free cores
    "assay --help": 0.3,
    "assay check gelu/torch --workload n=100,dtype=fp32": 4.0,
    "assay check my_gelu.py --workload n=100,dtype=fp32": 4.0,
    "assay check my_gelu.py --dtype fp32,bf16": 8.0,
    "assay check rows.py --dtype fp32,bf16": 30.0,
    f"assay report {ROOT}/results/h200/check.json --out page.html": 4.0,
    "assay report --out page.html": 4.0,
    "assay bench gelu --budget 1 --dtype fp32": 30.0,
}
ROWS = """
import triton
import triton.language as tl
from assay import kernel

@triton.jit
def _softmax(x, y, cols, stride, BLOCK: tl.constexpr):
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + c, mask=c < cols, other=float("-inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * cols + c, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=c < cols)

@kernel("softmax", most={"cols": 16384})
def one_program_a_row(x, *, out):
    if x.shape[0]:
        _softmax[(x.shape[0],)](x, out, x.shape[1], x.stride(0), triton.next_power_of_2(x.shape[1]))
"""


def seconds(command: str, folder: Path) -> float:
    """Return the wall-clock time of one command, whose exit code must be 0."""
    program, *arguments = shlex.split(command)
    words = [sys.executable, *(["-m", "assay"] if program == "assay" else []), *arguments]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "ASSAY_STORE": str(folder / "records.sqlite"),
        "COLUMNS": "120",
    }
    began = time.perf_counter()
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    took = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = (ROOT / "docs" / "first-kernel.md").read_text()
        first = re.search(r"^```python file=my_gelu\.py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        assert first, "docs/first-kernel.md has no my_gelu.py"
        (folder / "my_gelu.py").write_text(first[1])
        (folder / "rows.py").write_text(ROWS)
        best: dict[str, float] = {}
        for _ in range(repeat):
            for command in (TORCH, *COMMANDS):
                best[command] = min(best.get(command, float("inf")), seconds(command, folder))
    print(f"{'seconds':>8} {'× torch':>8} {'aim':>6}  command")
    for command, took in best.items():
        aim = f"{COMMANDS[command]:g} s" if command in COMMANDS else ""
        print(f"{took:8.2f} {took / best[TORCH]:8.2f} {aim:>6}  {command.replace(str(ROOT) + '/', '')}")


if __name__ == "__main__":
    main()
