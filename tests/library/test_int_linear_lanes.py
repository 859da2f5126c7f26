"""int_linear's CUDA C++, run on the CPU: its own source, compiled by g++, with threads for lanes (support/lanes.hpp).

What a GPU alone can show (how its tensor cores round, how fast it is) is not tested here; every index, shuffle and
bit pattern is."""

import re
import shutil
from pathlib import Path

import pytest
import torch

import lanes
from assay import inputs
from assay.catalog import library
from assay.check import judge, oracle
from assay.library.int_linear import cuda
from assay.workload import Workload

ROOT = Path(__file__).parents[2]
CASES = (
    # Workload, tunables. Few rows of x: each width, groups within and beyond 64 bytes, one scale for a row; divided
    # among warps, several slabs, rows and bytes behind the end; parts of fp32; NaN and infinities.
    ("m=1,n=5,k=1024,dtype=bf16,bits=8", {"warps": 4}),
    ("m=1,n=7,k=5216,dtype=bf16,bits=4,group=64,values=wide", {"warps": 4}),
    ("m=1,n=7,k=5008,dtype=bf16,bits=8,values=special", {"warps": 2, "rows": 4}),
    ("m=1,n=3,k=4096,dtype=fp16,bits=4,group=65536,values=special", {"warps": 2, "ahead": 4}),
    ("m=1,n=5,k=1056,dtype=fp16,bits=4,group=32,without=bias", {"warps": 4, "rows": 4}),
    ("m=1,n=5,k=1040,dtype=fp16,bits=8,group=16", {"warps": 4}),
    ("m=4,n=9,k=2048,dtype=bf16,bits=4,group=256,values=offset", {"warps": 2, "ahead": 1}),
    ("m=2,n=3,k=2080,dtype=fp32,bits=4,group=64,values=wide", {"warps": 2, "ahead": 1}),
    ("m=1,n=2,k=2000,dtype=fp32,bits=8,group=32,values=special", {"warps": 4}),
    # More rows of the weight than blocks: each goes on to further ones; an odd number of chunks; a row of one chunk.
    ("m=1,n=43,k=1024,dtype=bf16,bits=8", {"warps": 4, "WARPS": 4}),
    ("m=1,n=43,k=1536,dtype=bf16,bits=8,values=special", {"warps": 4, "WARPS": 4}),
    ("m=1,n=21,k=1056,dtype=fp16,bits=4,group=32", {"warps": 4, "WARPS": 4}),
    ("m=4,n=37,k=1024,dtype=bf16,bits=4,values=offset", {"warps": 2, "ahead": 1, "WARPS": 2}),
    ("m=2,n=23,k=512,dtype=fp32,bits=8,values=wide", {"warps": 2, "ahead": 1, "WARPS": 4}),
    # Tiles.
    ("m=9,n=130,k=136,dtype=bf16,bits=4,group=64", {}),
    ("m=70,n=33,k=264,dtype=fp16,bits=8,group=32,values=special", {}),
    ("m=5,n=40,k=96,dtype=fp32,bits=4,group=32,values=special", {}),
    # Anything else.
    ("m=3,n=40,k=97,dtype=fp16,bits=4,group=37,values=wide", {}),
    ("m=1,n=40,k=5,dtype=bf16,bits=8,group=1,values=special", {}),
)
SIZES = {
    "few": ("long long", "long long", "int", "int", "int", "int", "int"),
    "tiles": ("long long", "long long", "long long", "int", "int"),
    "any": ("long long",) * 5,
}
STATEMENTS = {
    r'asm\("fma\.rn\.f16x2.*?\);': "v = fma_half2(two, factor, offset);",
    r'asm\("fma\.rn\.bf16x2.*?\);': "v = fma_bf2(two, factor, offset);",
    r'asm\("lop3\.b32.*?\);': "v = (word & mask) | 0x64006400u;",
    r'asm\("mma[^;]*f32\.f16\.f16\.f32.*?"r"\(b1\)\);': "warp_mma<half_value>(c, a, b0, b1);",
    r'asm\("mma[^;]*f32\.bf16\.bf16\.f32.*?"r"\(b1\)\);': "warp_mma<bf_value>(c, a, b0, b1);",
}
"""Inline PTX, and the function that does the same here."""


def source():
    """The kernel's file as ordinary C++."""
    text = (ROOT / "src/assay/library/int_linear/kernel.cu").read_text()
    hints = "enum Hint { past_l1 };\ntemplate <Hint H> uint4 read_as(const uint4* p) { return *p; }\n"
    text = text.replace("#include <assay/hint.cuh>", f"#include <assay/vector.cuh>\n{hints}")
    text = text.replace("extern __shared__ uint4 staged[];", "uint4* const staged = dynamic_shared;")
    for ptx, here in STATEMENTS.items():
        text, count = re.subn(ptx, here, text, flags=re.DOTALL)
        assert count == 1, ptx
    assert "asm" not in text
    return lanes.plain(text)


def instance(name):
    """The types of a function's parameters, and what the kernel gets of them."""
    kind, number = re.match(r"int_linear_(\w+)<(\w+)", name).groups()
    types = ["const void*"] * 4 + ["void*", *SIZES[kind]]
    passed = [
        f"(const {number}*)v0, (const unsigned char*)v1, (const unsigned short*)v2, (const {number}*)v3, ({number}*)v4"
    ]
    return types, ", ".join(passed + [f"v{i}" for i in range(5, len(types))])


def called(case, tunables):
    """Workload, inputs, output and the launches of one case."""
    workload = Workload.of(library.find_op("int_linear"), case)
    drawn, noted = inputs.generate(workload), lanes.Launches()
    out = torch.full((workload.sizes.m, workload.sizes.n), torch.nan, dtype=workload.dtype.torch)
    tensors = [drawn.get(name) for name in ("x", "codes", "scales", "bias")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda, "source", noted)
        patch.setattr(cuda, "ROOM", 4096)  # so that a short x comes in several slabs
        patch.setattr(cuda, "WARPS", tunables.get("WARPS", cuda.WARPS))
        chosen = {name: value for name, value in tunables.items() if name != "WARPS"}
        cuda.int_linear(*tensors, bits=workload.sizes.bits, group=workload.sizes.group, out=out, **chosen)
    return workload, drawn, out, noted.all


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not here: apt install g++")
def test_every_design_of_the_cuda_kernel_computes_the_op(tmp_path):
    cases = [called(*case) for case in CASES]
    names = sorted({name for *_, launches in cases for name, *_ in launches})
    assert {n.partition("<")[0] for n in names} == {"int_linear_few", "int_linear_tiles", "int_linear_any"}
    built = lanes.built(source(), {name: instance(name) for name in names}, tmp_path)
    wrong = []
    for (_, tunables), (workload, drawn, out, launches) in zip(CASES, cases, strict=True):
        for launch in launches:
            _, grid, threads, *_ = launch
            assert "WARPS" not in tunables or grid[0] * threads // 32 * 2 < workload.sizes.n  # it has to go on
            lanes.run(built, launch)
        measures = judge.Measures(oracle.oracle(workload, drawn), oracle.baseline(workload, drawn), {})
        if found := judge.judge({"out": out}, measures).finding:
            wrong.append((launches[0][0], str(workload), found.what))
    assert wrong == []
