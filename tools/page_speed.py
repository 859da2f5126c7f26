"""Measures how long the page of compiled code takes to respond to a hover, in headless Chromium.

python tools/page_speed.py                 5,000 and 50,000 instructions
python tools/page_speed.py 2000 10000      these numbers of instructions

The kernels are synthetic. For each size it prints the median and worst time of the handler with the layout it causes,
the same until the frame with the new colours is drawn, and how long the page takes to be ready."""

from __future__ import annotations

import random
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from assay.inspect.row import Row
from assay.report import code
from assay.report.code import Code

SIZES = (5_000, 50_000)
HOVERS = 60
PIPES = {"FFMA": "fma", "IADD3": "alu", "MUFU.RSQ": "xu", "LDG.E.128": "lsu", "HMMA.16816.F32": "tensor"}
FILES = {"/made/up/kernel.cu": 900, "/made/up/inlined.cuh": 300}

MEASURE = """async ([pane, hovers]) => {
  const after = done => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); };
  const pause = () => new Promise(done => requestAnimationFrame(() => after(done)));
  const timings = { handler: [], frame: [], kin: [] };
  for (let n = 0; n < hovers; n++) {
    for (const e of document.querySelectorAll(".scroll")) e.scrollTop = (e.scrollHeight - e.clientHeight) * n / hovers;
    await pause(); await pause();
    const lines = [...document.querySelectorAll(`#${pane} .l`)], line = lines[(n * 7919) % lines.length];
    line.dispatchEvent(new PointerEvent("click", { bubbles: true }));  // brings its kin into view
    document.getElementById("unpin").click();
    await pause(); await pause();
    const start = performance.now();
    line.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    document.body.getBoundingClientRect();
    timings.handler.push(performance.now() - start);
    await pause();
    timings.frame.push(performance.now() - start);
    timings.kin.push(document.querySelectorAll(".l.kin, .l.far").length);
  }
  return timings;
}"""


def made_up(size: int) -> Code:
    """Make a kernel with two thirds of its instructions in loops and one in three inlined; nearby lines give nearby
    code."""
    dice = random.Random(size)
    rows: list[dict[str, Any]] = []
    kernel, inlined = FILES
    blocks, start = [], 0
    while start < size:
        end = min(size, start + dice.randint(8, 60))
        n = len(blocks)
        follows = [f for f in {n + 1, max(0, n - dice.randint(0, 3))} if n % 2 or f == n + 1]
        blocks.append(
            {"number": n, "start": 16 * start, "end": 16 * (end - 1), "follows": follows, "loop_depth": n % 3}
        )
        for at in range(start, end):
            opcode = dice.choice(list(PIPES))
            far = dice.random() < 0.33
            rows.append(
                Row(
                    16 * at,
                    opcode,
                    f"{opcode} R{at % 200}, desc[UR4][R{at % 77}.64+0x{at % 999:x}]",
                    "",
                    (),
                    f"{at:032x}",
                    dice.randint(1, 15),
                    bool(at % 5),
                    at % 6 if at % 7 == 0 else None,
                    None,
                    (at % 6,) if at % 11 == 0 else (),
                    (),
                    n,
                    n % 3,
                    PIPES[opcode],
                    "",
                    None,
                    dice.randint(20, 200),
                    inlined if far else kernel,
                    1 + at * FILES[inlined if far else kernel] // size,
                    ((kernel, 1 + at * 90 // size * 10),) if far else (),
                    20 + at // 2,
                    None,
                ).to_dict()
            )
        start = end
    sources = {
        f: "\n".join(f"    float x{i} = y[{i}] * 2.0f;  // line {i + 1}" for i in range(n)) for f, n in FILES.items()
    }
    ptx = "\n".join(f"\tfma.rn.f32 \t%f{i}, %f{i + 1}, %f{i + 2}, 0f3F800000;" for i in range(size // 2 + 30))
    return Code(f"made/up:{size}", "sm_90", "made_up", "none", rows, sources, ptx, blocks=blocks)


def main() -> None:
    sizes = [int(a) for a in sys.argv[1:]] or SIZES
    path = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if path is None:
        sys.exit("no chromium here: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for size in sizes:
            file = code.write([made_up(size)], Path(folder) / f"{size}.html")
            page = browser.new_page(viewport={"width": 1600, "height": 1000})
            page.goto(file.as_uri())
            page.locator("html[data-shown]").wait_for(state="attached")
            ready = page.evaluate("performance.now()")
            print(f"{size} instructions: {file.stat().st_size / 1e6:.1f} MB, ready after {ready:.0f} ms")
            for pane in ("source", "ptx", "sass"):
                times = page.evaluate(MEASURE, [pane, HOVERS])
                parts = [
                    f"{what} {statistics.median(times[key]):.1f} ms (worst {max(times[key]):.1f})"
                    for key, what in (("handler", "handler and layout"), ("frame", "until the frame"))
                ]
                print(f"  hover in {pane:6}  {',  '.join(parts)};  {statistics.median(times['kin']):.0f} lines lit")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
