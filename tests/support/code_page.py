"""Two real kernels and the page of their code, for the tests of that page."""

import itertools
from collections import defaultdict

from assay.backends import nvrtc
from assay.inspect.row import Row
from assay.isa import sass
from assay.isa.control import control
from assay.report.code import Code
from assay.target import Target

SOURCE = """\
#include "planted.cuh"

/* Each line below is compiled to something
   that no other line gives. */
template <int N>
__global__ void planted(const float4* __restrict__ in, float* out, unsigned* bits, int n) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float4 v = in[i];
        sum += scaled(v.x, 1e-5f);
        sum += v.y * v.z;
        if (v.w > 2.0f) {
            sum += twice(v.w, 1e-6f);
        }
    }
    unsigned ones = __popc(bits[threadIdx.x]);
    atomicAdd(bits + N, ones);
    out[threadIdx.x] = sum;  // "the end" <b>
}
"""
HEADER = """\
// Inlined twice: by the kernel itself, and by another inlined function.
__device__ __forceinline__ float scaled(float x, float eps) {
    float r = rsqrtf(x + eps);
    return x * r;
}

__device__ __forceinline__ float twice(float x, float eps) {
    return scaled(x, eps) + 1.0f;
}
"""
FILE, INCLUDED = "/somewhere/planted.cu", "/somewhere/planted.cuh"
RSQRT = (INCLUDED, HEADER[: HEADER.index("rsqrtf")].count("\n") + 1)
TWICE = (INCLUDED, HEADER[: HEADER.index("scaled(x, eps) + 1")].count("\n") + 1)
LOAD, CALL, CALL_TWICE, POPC, ATOMIC = (
    (FILE, SOURCE[: SOURCE.index(text)].count("\n") + 1)
    for text in ("in[i]", "scaled(v.x", "twice(", "__popc", "atomicAdd")
)
PIPES = {
    "FADD": "fma",
    "FMUL": "fma",
    "FFMA": "fma",
    "IMAD": "fma",
    "HFMA2": "fma",
    "MUFU": "xu",
    "POPC": "xu",
    "LDG": "lsu",
    "STG": "lsu",
    "LDC": "lsu",
    "REDG": "lsu",
    "ULDC": "uniform",
    "BRA": "cbu",
    "EXIT": "cbu",
    "BSSY": "cbu",
    "BSYNC": "cbu",
}


def blocks_of(function):
    """Basic blocks by the reader's own word on what follows what."""
    every = function.instructions
    starts = {every[0].address}
    for one, after in itertools.pairwise(every):
        if function.goes_to(one) or function.follows(one) != (after.address,):
            starts |= {after.address, *function.goes_to(one)}
    starts = sorted(starts)
    number = {start: n for n, start in enumerate(starts)}
    backs = [(t, i.address) for i in every for t in function.goes_to(i) if t < i.address]
    found = []
    for n, start in enumerate(starts):
        end = starts[n + 1] - 16 if n + 1 < len(starts) else every[-1].address
        follows = function.follows(every[function.index[end]])
        depth = sum(a <= start and end <= b for a, b in backs)
        found.append(
            {"number": n, "start": start, "end": end, "follows": [number[f] for f in follows], "loop_depth": depth}
        )
    return found


def rows_of(function, blocks):
    rows = []
    for n, i in enumerate(function.instructions):
        c = control(i.encoding)
        block = max((b for b in blocks if b["start"] <= i.address), key=lambda b: b["start"])
        wide = next((int(m) for m in i.modifiers if m in ("64", "128")), 32)
        memory = i.opcode in ("LDG", "STG", "REDG")
        rows.append(
            Row(
                i.address,
                i.name,
                i.text,
                i.predicate,
                i.operands,
                b"".join(w.to_bytes(8, "little") for w in i.encoding).hex(),
                c.stall,
                c.may_yield,
                c.write_barrier,
                c.read_barrier,
                c.waits,
                c.reuse,
                block["number"],
                block["loop_depth"],
                PIPES.get(i.opcode, "uniform" if i.opcode.startswith("U") else "alu"),
                "global" if memory else "",
                wide if memory else None,
                8 + n * 7 % 13,
                i.source.file,
                i.source.line,
                tuple((p.file, p.line) for p in i.inlined),
                i.ptx,
                None,
            ).to_dict()
        )
    return rows


def made(text, name, target):
    artifact = nvrtc.build(text, FILE, name, Target(target))
    function = sass.disassemble(artifact.cubin)[artifact.symbol]
    blocks = blocks_of(function)
    return function, Code(
        name.replace("planted", "test/cuda:planted"),
        target,
        artifact.symbol,
        artifact.compiler,
        rows_of(function, blocks),
        {FILE: SOURCE, INCLUDED: HEADER},
        artifact.ptx.decode(),
        blocks=blocks,
        summary={
            "registers": artifact.registers,
            "spills": 0,
            "stack": 0,
            "shared": artifact.shared,
            "occupancy": {"threads": {"256": 1.0, "1024": 0.5}, "limit": "registers"},
            "opcodes": {"LDG": 2, "MUFU": 2},
        },
        figures={i.address: {"samples": i.address // 16 * 5} for i in function.instructions[:20]},
        heading=[("time", "12.3 µs"), ("of the limit", "81 %")],
    )


def tones(function):
    """Line → addresses of its own instructions, and of those inlined there; the same for their PTX lines."""
    own, inlined = defaultdict(set), defaultdict(set)
    for i in function.instructions:
        own[i.source.file, i.source.line].add(i)
        for place in {(p.file, p.line) for p in i.inlined} - {(i.source.file, i.source.line)}:
            inlined[place].add(i)
    return own, inlined


def addresses(instructions):
    return sorted(i.address for i in instructions)


def lit(page, pane, tone, attribute):
    return sorted(
        page.locator(f"#{pane} .l.{tone}[data-{attribute}]").evaluate_all(
            f"rows => rows.map(r => Number(r.dataset.{attribute}))"
        )
    )


def lights(page):
    """All that `lit` tells, asked for at once: (pane, tone) → lines, or addresses in the SASS."""
    told = page.evaluate("""() => ["kin", "far"].flatMap(tone => [...document.querySelectorAll(`.l.${tone}`)].map(
        r => [r.closest("#source, #ptx, #sass").id, tone, Number(r.dataset.address ?? r.dataset.line)]))""")
    panes = {(pane, tone): [] for pane in ("source", "ptx", "sass") for tone in ("kin", "far")}
    for pane, tone, number in told:
        panes[pane, tone].append(number)
    return {where: sorted(numbers) for where, numbers in panes.items()}


def tab(page, file):
    page.get_by_role("tab", name=file.rsplit("/", 1)[-1], exact=True).click()


def line(page, pane, number):
    """Its gutter: a place to point at that is always in view."""
    return page.locator(f"#{pane} .l[data-line='{number}'] .g")


def row(page, address):
    return page.locator(f"#sass .l[data-address='{address}'] .g")


def rest(page):
    """The mouse where no line is."""
    page.mouse.move(700, 60)
