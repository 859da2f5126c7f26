"""int_round's CUDA C++, run on the CPU: its own source, compiled by g++, with threads for lanes (support/lanes.hpp)."""

import re
import shutil
from pathlib import Path

import pytest
import torch

import lanes
from assay import inputs
from assay.catalog import library
from assay.library.int_round import cuda
from assay.worker.bits import bits
from assay.workload import Workload

ROOT = Path(__file__).parents[2]
CASES = (
    # Workload, tunables: whole rows with and without vectors; several parts of a row, the last one short.
    ("rows=3,cols=64,bits=8,dtype=fp32", {"threads": 32}),
    ("rows=5,cols=37,bits=4,dtype=bf16,values=special", {"threads": 64}),
    ("rows=2,cols=136,bits=5,dtype=fp16,values=halfway", {"threads": 64}),
    ("rows=4,cols=200,bits=2,dtype=fp32,values=subnormal", {"threads": 32, "span": 64}),
    ("rows=3,cols=203,bits=8,dtype=bf16,values=wide", {"threads": 64, "span": 64}),
    ("rows=2,cols=1040,bits=3,dtype=fp16,values=special", {"threads": 64, "span": 16}),
)
TYPES = {
    "int_round": "x, out, long long, float, float",
    "int_round_largest": "x, unsigned*, long long, long long, long long",
    "int_round_parts": "x, const unsigned*, out, long long, long long, long long, float, float",
}
C_TYPES = {"x": "const void*", "out": "void*", "unsigned*": "void*", "const unsigned*": "const void*"}


def instance(name):
    kind, number = re.match(r"(\w+)<(\w+)", name).groups()
    told = TYPES[kind].split(", ")
    casts = {"x": f"const {number}*", "out": f"{number}*"}
    passed = ", ".join(f"({casts.get(t, t)})v{i}" for i, t in enumerate(told))
    return [C_TYPES.get(t, t) for t in told], passed


def called(case, tunables):
    workload = Workload.of(library.find_op("int_round"), case)
    x, noted = inputs.generate(workload)["x"], lanes.Launches()
    if workload.dtype.name == "fp32" and workload.values == "normal":  # scales on a tie: 200½ and 201½ steps
        x[:2, 0] = (2 ** (workload.sizes.bits - 1) - 1) * torch.tensor([401.0, 403.0]) / 256
    out, largest = torch.full_like(x, torch.nan), torch.full((len(x), cuda.PARTS), -1, dtype=torch.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda, "source", noted)
        cuda.int_round(x, bits=workload.sizes.bits, out=out, largest=largest, **tunables)
    return workload, x, out, noted.all


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not here: apt install g++")
def test_every_design_of_the_cuda_kernel_computes_the_op(tmp_path):
    cases = [called(*case) for case in CASES]
    names = sorted({name for *_, launches in cases for name, *_ in launches})
    assert {n.partition("<")[0] for n in names} == set(TYPES)
    text = (ROOT / "src/assay/library/int_round/kernel.cu").read_text()
    built = lanes.built(lanes.plain(text), {name: instance(name) for name in names}, tmp_path)
    for workload, x, out, launches in cases:
        for launch in launches:
            lanes.run(built, launch)
        right = workload.op.reference(x, bits=workload.sizes.bits)
        assert torch.equal(out.isnan(), right.isnan()), str(workload)
        assert torch.equal(bits(out)[~out.isnan()], bits(right)[~right.isnan()]), str(workload)
