"""int_linear: how codes become 16-bit floats, what its kernels are compiled to, and that it is right on a GPU."""

import importlib
import math

import numpy as np
import pytest
import torch

from assay import inputs
from assay.backends import backend
from assay.catalog import library
from assay.check import judge, oracle
from assay.inspect.verb import Options, inspections
from assay.target import Target
from assay.workload import Workload

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
WORDS = np.arange(1 << 16, dtype=np.uint32) * 0x10001
"""All pairs of 16 bits that are equal: what is done to the lower half is done to the upper."""
DECODED = "m=1,n=16384,k=8192,group=128,dtype=bf16"
"""A layer at decoding, which must be as fast as its bytes are read."""


# Codes to floats, by the constants of kernel.cu. Each line is one multiply-add, rounded once.


def halves(bits, number):
    """The lower 16 bits of words as numbers of a format, in float64."""
    return torch.from_numpy((bits & 0xFFFF).astype(np.uint16).view(np.int16).copy()).view(TYPES[number]).double()


def multiply_add(bits, factor, offset, number):
    exact = halves(bits, number) * halves(np.uint32(factor)[None], number) + halves(np.uint32(offset)[None], number)
    return exact.to(TYPES[number]).double(), exact


@pytest.mark.parametrize(
    ("number", "shift", "mask", "magic", "factor", "offset", "gain"),
    [
        ("fp16", 0, 0x0F, 0x6400, 0x3C00, 0xE408, 1),
        ("fp16", 4, 0xF0, 0x6400, 0x2C00, 0xD480, 1),
        ("bf16", 0, 0x0F, 0, 0x7F00, 0xBE00, 64),
        ("bf16", 4, 0xF0, 0, 0x7D00, 0xBE00, 64),
    ],
)
def test_a_nibble_becomes_its_number_where_it_stands(number, shift, mask, magic, factor, offset, gain):
    made, exact = multiply_add(WORDS & mask | magic, factor, offset, number)
    assert torch.equal(made, exact), "nothing is rounded"
    wanted = torch.from_numpy((WORDS >> shift & 15).astype(np.float64)) - 8
    assert torch.equal(made * gain, wanted)


@pytest.mark.parametrize(
    ("number", "magic", "factor", "offset", "gain"),
    [("fp16", 0x6400, 0x3C00, 0xE480, 1), ("bf16", 0, 0x7F00, 0xC000, 64)],
)
def test_a_byte_becomes_its_number(number, magic, factor, offset, gain):
    made, exact = multiply_add(WORDS & 0xFF | magic, factor, offset, number)
    assert torch.equal(made, exact)
    assert torch.equal(made * gain, torch.from_numpy((WORDS & 0xFF).astype(np.float64)) - 128)


def test_the_constants_are_those_of_the_kernel():
    text = (library.ROOT / "int_linear" / "kernel.cu").read_text()
    used = ("6400", "3c00", "e408", "2c00", "d480", "e480", "7f00", "be00", "7d00", "c000")
    assert all(f"0x{c}{c}u" in text for c in used)


# The op.


@pytest.mark.parametrize("bits", [4, 8])
def test_the_reference_is_codes_times_scales(bits):
    op = library.find_op("int_linear")
    codes = torch.tensor([[0x0F, 0x08], [0x80, 0xF1]], dtype=torch.uint8)
    values = [[7, -8, 0], [-8, 0, -7]] if bits == 4 else [[-113, -120], [0, 113]]
    scales = torch.tensor([[0.5, 2.0], [1.0, 0.25]], dtype=torch.bfloat16)[:, : 2 if bits == 4 else 1]
    spread = torch.tensor([[0.5, 0.5, 2.0], [1.0, 1.0, 0.25]]) if bits == 4 else scales.float()
    x = torch.tensor([[1.0, -2.0, 3.0]])[:, : len(values[0])]
    out = op.reference(x, codes, scales, None, bits=bits, group=2)
    assert torch.equal(out, x @ (torch.tensor(values) * spread).T)


@pytest.mark.parametrize(("bits", "size"), [(4, 0.5), (8, 1)])
def test_bytes_are_those_of_packed_weights(bits, size):
    workload = Workload.of(library.find_op("int_linear"), f"m=1,n=64,k=320,bits={bits},group=64,dtype=bf16")
    assert workload.bytes == 64 * (320 * size + 2 * 5) + 2 * (320 + 64 + 64)
    odd = Workload.of(library.find_op("int_linear"), "m=1,n=4,k=33,bits=4,group=16,dtype=bf16,without=bias")
    assert odd.bytes == 4 * (17 + 2 * 3) + 2 * (33 + 4)


@pytest.mark.parametrize("values", ["normal", "special"])
@pytest.mark.parametrize("bits", [4, 8])
def test_pytorchs_kernel_is_right_at_odd_depths(bits, values):
    for shape in ("m=3,n=7,k=33,group=16", "m=1,n=5,k=1,group=128", "m=2,n=3,k=7,group=3"):
        assert wrong("torch", f"{shape},bits={bits},dtype=fp16,values={values}", "cpu") == ""


def wrong(language, text, device):
    """What the judge says of a language's kernel on one workload; empty: it is right."""
    function = importlib.import_module(f"assay.library.int_linear.{language}").int_linear
    workload = Workload.of(library.find_op("int_linear"), text)
    drawn = inputs.generate(workload)
    there = [drawn[n].to(device) for n in ("x", "codes", "scales", "bias")]
    out = torch.full((workload.sizes.m, workload.sizes.n), math.nan, dtype=workload.dtype.torch, device=device)
    function(*there, bits=workload.sizes.bits, group=workload.sizes.group, out=out)
    measures = judge.Measures(oracle.oracle(workload, drawn), oracle.baseline(workload, drawn), {})
    found = judge.judge({"out": out.cpu()}, measures).finding
    return f"{workload}: {found.what}" if found else ""


# What it is compiled to.


def built(shape, target="sm_90a", **tunables):
    """The artifacts that the CUDA kernel launches on that shape."""
    from assay.library.int_linear.cuda import int_linear

    workload = Workload.of(library.find_op("int_linear"), shape)
    drawn = {n: torch.empty(workload.shape(t), dtype=workload.dtype_of(t).torch) for n, t in workload.present.items()}
    out = torch.empty(workload.sizes.m, workload.sizes.n, dtype=workload.dtype.torch)
    with backend("cuda").tracing(Target(target)) as launches:
        int_linear(
            *(drawn.get(n) for n in ("x", "codes", "scales", "bias")),
            bits=workload.sizes.bits,
            group=workload.sizes.group,
            out=out,
            **tunables,
        )
    return [launch.artifact for launch in launches]


@pytest.mark.parametrize(("target", "number"), [("sm_80", "fp32"), ("sm_100", "fp16")])
def test_other_generations_are_built_for_too(target, number):
    for shape in ("m=1,n=64,k=4096,bits=8", "m=9,n=64,k=64", "m=1,n=3,k=3"):
        assert built(f"{shape},dtype={number}", target)


@pytest.mark.parametrize(("bits", "most"), [(8, 54), (4, 80)])
def test_the_loop_over_codes_leaves_time_to_read_them(bits, most):
    """For every 16 bytes of codes an H200 can issue about 120 instructions to a lane; two blocks of 16 warps, each with
    four loads of 16 bytes on their way for each lane, hide the latency (docs/kernels/int_linear.md)."""
    (found,) = inspections(["int_linear/cuda"], Options(("sm_90a",), workload=f"{DECODED},bits={bits}"))
    blocks = {}
    for row in found.table.rows:
        blocks.setdefault(row.block, []).append(row)
    (loop,) = [rows for rows in blocks.values() if any(r.opcode.startswith("HMMA") for r in rows)]
    wide = [r for r in loop if r.opcode.startswith("LDG") and r.width == 128]
    assert len(wide) == 4 and len(loop) / len(wide) <= most
    assert not [r for r in loop if r.opcode.startswith(("LDL", "STL", "BAR", "I2F"))]
    assert found.evidence.summary.registers <= 64 and found.evidence.summary.spills.most == 0
    assert found.record.status != "fail", found.record.reason


# On a GPU.

SHAPES = (
    "m=1,n=300,k=4096",
    "m=1,n=64,k=1056,group=32",
    "m=2,n=33,k=20000,group=64",
    "m=4,n=64,k=512,group=65536",
    "m=9,n=130,k=1040,group=64",
    "m=33,n=130,k=272,group=32",
    "m=200,n=384,k=384",
    "m=5,n=7,k=33,group=24",
)


@pytest.mark.gpu
@pytest.mark.parametrize("language", ["triton", "cuda"])
@pytest.mark.parametrize("number", TYPES)
def test_every_design_stays_within_its_limit_on_the_gpu(language, number):
    texts = [
        f"{shape},bits={bits},dtype={number},values={values}"
        for shape in SHAPES
        for bits in (4, 8)
        for values in ("normal", "wide", "special", "offset")
    ]
    assert [found for text in texts if (found := wrong(language, text, "cuda"))] == []


@pytest.mark.gpu
@pytest.mark.parametrize("language", ["triton", "cuda"])
@pytest.mark.parametrize("bits", [4, 8])
def test_the_tensor_cores_see_every_code_on_the_gpu(language, bits):
    """One code to a row: it must not depend on whether subnormal 16-bit floats are kept on the way."""
    int_linear = importlib.import_module(f"assay.library.int_linear.{language}").int_linear
    codes = torch.full((256, 64 * bits // 8), 2 ** (bits - 1) * (1 if bits == 8 else 17), dtype=torch.uint8)
    codes[:, 40 * bits // 8] = torch.arange(256)  # the column 40, and 41 beside it where two share a byte
    scales = torch.ones(256, 1, dtype=torch.bfloat16)
    wanted = torch.arange(256) - 128 if bits == 8 else torch.arange(256) % 16 - 8
    for number, kind in TYPES.items():
        for m in (1, 2, 4, 9, 40):
            x, out = torch.zeros(m, 64, dtype=kind), torch.empty(m, 256, dtype=kind, device="cuda")
            x[:, 40] = 1.0
            int_linear(x.cuda(), codes.cuda(), scales.cuda(), None, bits=bits, group=64, out=out)
            assert torch.equal(out.cpu().double(), wanted.double().expand(m, -1)), (number, m)
