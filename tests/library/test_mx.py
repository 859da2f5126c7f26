"""MXINT8: every kernel gives the vectors' bits, and the vectors are the rule's, computed with fractions."""

import doctest
import importlib
import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import inputs
from assay.backends import backend
from assay.catalog import library
from assay.check import judge, oracle
from assay.target import Target
from assay.workload import VALUES, Workload

ROOT = Path(__file__).parents[2]
VECTORS = json.loads((ROOT / "conformance" / "mxint8.json").read_text())
PARTIAL = next(k for k in library.kernels() if k.name == "mx_linear/cuda").scratch["partial"][1]
"""Work space of the CUDA kernel."""
BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "int8": 8, "uint8": 8}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "int8": torch.int8, "uint8": torch.uint8}


def exact():
    """The generator, whose arithmetic is fractions and which imports nothing of assay."""
    spec = importlib.util.spec_from_file_location("mx_vectors", ROOT / "tools" / "mx_vectors.py")
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    if not hasattr(module, "quantize"):
        spec.loader.exec_module(module)
    return module


def read(text, number, rows):
    """Hexadecimal words of the vector file as a tensor."""
    unsigned, signed = {8: (np.uint8, np.int8), 16: (np.uint16, np.int16), 32: (np.uint32, np.int32)}[BITS[number]]
    words = np.array([int(word, 16) for word in text.split()], unsigned).view(signed)
    return torch.from_numpy(words).view(TYPES[number]).view(rows, -1)


def same(a, b):
    """Bit for bit, and any NaN for a NaN."""
    view = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[a.element_size()]
    equal = a.contiguous().view(view) == b.contiguous().view(view)
    return a.shape == b.shape and bool((equal | (a.isnan() & b.isnan())).all())


def kernel(op, language):
    """As a function that returns what the kernel writes; `reference` is the op's own."""
    if language == "reference":
        return library.find_op(op).reference
    function = getattr(importlib.import_module(f"assay.library.{op}.{language}"), op)

    def quantize(x, *, block):
        elements = torch.empty(x.shape, dtype=torch.int8, device=x.device)
        scales = torch.empty((x.shape[0], -(-x.shape[1] // block)), dtype=torch.uint8, device=x.device)
        function(x, block=block, elements=elements, scales=scales)
        return elements, scales

    def dequantize(elements, scales, *, block, dtype=torch.float32):
        out = torch.empty(elements.shape, dtype=dtype, device=elements.device)
        function(elements, scales, block=block, out=out)
        return out

    return {"mx_quantize": quantize, "mx_dequantize": dequantize}[op]


def not_as_the_vectors_say(language, device="cpu"):
    """Names of the cases in which this language's kernels give other bits."""
    quantize, dequantize = kernel("mx_quantize", language), kernel("mx_dequantize", language)
    wrong = []
    for case in VECTORS["quantize"]:
        x = read(case["x"], case["dtype"], case["rows"]).to(device)
        elements, scales = quantize(x, block=case["block"])
        back = dequantize(elements, scales, block=case["block"])
        wanted = ("elements", "int8"), ("scales", "uint8"), ("back", "fp32")
        for value, (name, number) in zip((elements, scales, back), wanted, strict=True):
            if not same(value.cpu(), read(case[name], number, case["rows"])):
                wrong.append(f"{case['name']}: {name}")
    for case in VECTORS["dequantize"]:
        elements, scales = read(case["elements"], "int8", 1).to(device), read(case["scales"], "uint8", 1).to(device)
        for number in ("fp32", "bf16", "fp16"):
            if language == "reference":
                out = dequantize(elements, scales, block=case["block"]).to(TYPES[number])
            else:
                out = dequantize(elements, scales, block=case["block"], dtype=TYPES[number])
            if not same(out.cpu(), read(case[number], number, 1)):
                wrong.append(f"{case['name']}: {number}")
    return wrong


def test_the_vector_file_is_what_the_rule_gives():
    command = [sys.executable, ROOT / "tools" / "mx_vectors.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("language", ["reference", "torch", "njit"])
def test_kernels_give_the_vectors_bit_for_bit(language):
    assert not_as_the_vectors_say(language) == []


INTERPRETED = """
import runpy, sys
from assay.backends import backend

backend("triton").prepare("triton-interpret")
wrong = runpy.run_path(sys.argv[1])["not_as_the_vectors_say"]("triton")
print(wrong)
sys.exit(bool(wrong))
"""


@pytest.mark.slow
def test_triton_gives_them_in_its_interpreter():
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT / "src"), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", INTERPRETED, __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("language", ["torch", "triton", "cuda"])
def test_kernels_give_them_on_the_gpu(language):
    assert not_as_the_vectors_say(language, "cuda") == []


# The golden cases, as numbers.
LARGEST = 1.984375


@pytest.mark.parametrize("language", ["reference", "torch", "njit"])
@pytest.mark.parametrize(
    ("values", "back"),
    [
        ([1.0] * 32, [1.0] * 32),
        ([1.9999, -1.9999] * 16, [LARGEST, -LARGEST] * 16),
        ([1.0, 1 / 128, 3 / 128, 5 / 128], [1.0, 0.0, 2 / 64, 2 / 64]),
        ([3.4028234663852886e38] * 32, [LARGEST * 2.0**127] * 32),
        ([2.0**-130] * 32, [2.0**-130] * 32),
        ([2.0**-140] * 32, [0.0] * 32),
        ([0.0, -0.0] * 16, [0.0, 0.0] * 16),
        ([1.0] * 31 + [math.nan], [math.nan] * 32),
        ([1.0] * 31 + [-math.inf], [math.nan] * 32),
    ],
)
def test_golden_values_come_back_as_the_rule_says(language, values, back):
    elements, scales = kernel("mx_quantize", language)(torch.tensor([values]), block=32)
    assert same(kernel("mx_dequantize", language)(elements, scales, block=32), torch.tensor([back]))


@pytest.mark.parametrize("language", ["reference", "torch", "njit"])
def test_just_below_a_power_of_two_the_exponent_is_not_rounded_up(language):
    powers = torch.arange(-125, 128).double()
    below = np.nextafter(torch.exp2(powers).numpy().astype(np.float32), np.float32(0))
    elements, scales = kernel("mx_quantize", language)(torch.from_numpy(below)[:, None].repeat(1, 32), block=32)
    back = kernel("mx_dequantize", language)(elements, scales, block=32)
    assert torch.equal(back.double(), (LARGEST * torch.exp2(powers - 1))[:, None].expand(-1, 32))
    assert scales.flatten().tolist() == list(range(1, 254))


# Any bits.
def patterns(form, most):
    """Rows of bit patterns: any at all, or within some binades of each other, where codes are not all 0."""

    def near(base):
        exponent = st.integers(base, min(base + 9, form.top - 1))
        fraction = st.integers(0, (1 << form.fraction) - 1)
        return st.builds(
            lambda s, e, f: s << (form.bits - 1) | e << form.fraction | f, st.booleans(), exponent, fraction
        )

    anything = st.integers(0, (1 << form.bits) - 1)
    sizes = {"min_size": 1, "max_size": most}
    return st.one_of(
        st.lists(anything, **sizes), st.integers(0, form.top - 1).flatmap(lambda b: st.lists(near(b), **sizes))
    )


def floats(bits, number):
    return read(" ".join(f"{b:x}" for b in bits), number, 1)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_reference_kernels_and_fractions_agree_on_any_bits(data):
    number = data.draw(st.sampled_from(["fp32", "fp32", "bf16", "fp16"]))
    form = exact().FORMATS[number]
    bits, block = data.draw(patterns(form, 70)), data.draw(st.integers(1, 40))
    x = floats(bits, number)
    codes, scale_codes = exact().quantize([[form.decode(b) for b in bits]], block)
    wide = exact().FORMATS["fp32"]
    values = [[wide.encode(v) for v in row] for row in exact().dequantize(codes, scale_codes, block)]
    for language in ("reference", "torch", "njit"):
        elements, scales = kernel("mx_quantize", language)(x, block=block)
        assert elements.tolist() == codes and scales.tolist() == scale_codes, language
        assert same(kernel("mx_dequantize", language)(elements, scales, block=block), floats(values[0], "fp32")), (
            language
        )


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_dequantisation_rounds_once_to_every_format(data):
    codes = data.draw(st.lists(st.integers(-128, 127), min_size=1, max_size=40))
    block = data.draw(st.integers(1, 40))
    count = -(-len(codes) // block)
    scale_codes = data.draw(st.lists(st.integers(0, 255), min_size=count, max_size=count))
    values = exact().dequantize([codes], [scale_codes], block)[0]
    elements, scales = torch.tensor([codes], dtype=torch.int8), torch.tensor([scale_codes], dtype=torch.uint8)
    for number, form in exact().FORMATS.items():
        for language in ("torch", "njit"):
            out = kernel("mx_dequantize", language)(elements, scales, block=block, dtype=TYPES[number])
            assert same(out, floats([form.encode(v) for v in values], number)), (language, number)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_second_round_changes_nothing_and_the_error_is_half_a_step(data):
    form = exact().FORMATS["fp32"]
    bits, block = data.draw(patterns(form, 70)), data.draw(st.integers(1, 40))
    x = floats(bits, "fp32")
    quantize, dequantize = kernel("mx_quantize", "njit"), kernel("mx_dequantize", "njit")
    elements, scales = quantize(x, block=block)
    back = dequantize(elements, scales, block=block)
    assert same(dequantize(*quantize(back, block=block), block=block), back)
    scale = torch.exp2(scales.double() - 127).repeat_interleave(block, 1)[:, : x.shape[1]]
    error = (x.double() - back.double()).abs()
    saturated = elements.abs() == 127
    assert bool((error <= scale / 128)[back.isfinite() & ~saturated].all())
    assert bool((error < scale / 64)[back.isfinite()].all())


def test_signal_to_noise_of_unit_normals():
    """What seven bits and a shared power of two leave of N(0, 1). The figure, 41.7 dB, is the issue's."""
    x = torch.randn(1 << 12, 256, generator=torch.Generator().manual_seed(5))
    elements, scales = kernel("mx_quantize", "torch")(x, block=32)
    noise = x - kernel("mx_dequantize", "torch")(elements, scales, block=32)
    assert 10 * math.log10(x.double().square().sum() / noise.double().square().sum()) == pytest.approx(41.7, abs=0.1)


# The ops in the harness.
def test_an_integer_output_off_by_one_and_a_float_off_by_an_ulp_fail():
    op = library.find_op("mx_quantize")
    workload = Workload.of(op, "rows=5,cols=70,dtype=bf16")
    drawn = inputs.generate(workload)
    truth, plain = oracle.oracle(workload, drawn), oracle.baseline(workload, drawn)
    right = {n: truth.exact[n].to(plain[n].dtype) for n in plain}
    assert judge.judge(right, judge.Measures(truth, plain, {})).finding is None
    for name in right:
        wrong = right | {name: right[name].clone()}
        wrong[name][2, 1] += 1
        for finding in (
            judge.judge(wrong, judge.Measures(truth, plain, {})).finding,
            judge.judge_maximum(wrong, truth, {}).finding,
        ):
            assert finding.detector == "values" and f"`{name}`[2, 1]" in finding.what and "; 1 of" in finding.what

    op = library.find_op("mx_dequantize")
    workload = Workload.of(op, "rows=5,cols=70,dtype=fp16,values=small")
    drawn = inputs.generate(workload)
    truth, plain = oracle.oracle(workload, drawn), oracle.baseline(workload, drawn)
    out = truth.exact["out"].to(torch.float16)
    assert judge.judge({"out": out}, judge.Measures(truth, plain, {})).finding is None
    out.view(torch.int16)[4, 69] += 1
    assert judge.judge({"out": out}, judge.Measures(truth, plain, {})).finding.detector == "values"


@pytest.mark.parametrize("values", VALUES)
def test_integers_are_drawn_from_their_range(values):
    op = library.find_op("mx_linear")
    drawn = inputs.generate(Workload.of(op, f"m=1,n=300,k=200,dtype=fp16,values={values}"))
    codes, scales = drawn["elements"], drawn["scales"]
    assert codes.dtype == torch.int8
    assert len(codes.unique()) > 4 or values in ("ties", "ends", "alike")
    inside = (scales >= 113) & (scales <= 129)
    nan = scales == 255
    if values == "beyond":
        assert not bool((inside | nan).all())
    else:
        assert bool((inside | nan).all()) and bool(nan.any()) == (values == "special")
    if values == "wide":
        assert codes.min() < -120 and codes.max() > 120 and len(scales.unique()) == 17


@pytest.mark.parametrize("number", ["fp32", "bf16", "fp16"])
def test_bytes_are_those_of_packed_weights(number):
    size = {"fp32": 4, "bf16": 2, "fp16": 2}[number]
    for name in ("mx_quantize", "mx_dequantize"):
        op = library.find_op(name)
        assert Workload.of(op, f"rows=10,cols=320,dtype={number}").bytes == 10 * 320 * (1 + 1 / 32 + size)
    op = library.find_op("mx_linear")
    assert Workload.of(op, f"m=1,n=64,k=320,dtype={number}").bytes == 64 * (320 + 10) + size * (320 + 64 + 64)
    assert Workload.of(op, f"m=1,n=4,k=33,block=16,dtype={number},without=bias").bytes == 4 * (33 + 3) + size * (33 + 4)


@pytest.mark.parametrize("language", ["torch", "njit"])
def test_the_linear_layer_is_right_at_every_scale(language):
    """One product a row, at each of the 256 scales: exact but for the last rounding."""
    function = importlib.import_module(f"assay.library.mx_linear.{language}").mx_linear
    x = torch.zeros(2, 64)
    x[:, 3] = 1.0
    codes = torch.zeros(256, 64, dtype=torch.int8)
    codes[:, 3] = (torch.arange(256) % 255 - 127).to(torch.int8)
    scales = torch.stack([torch.arange(256), torch.zeros(256)], 1).to(torch.uint8)
    out = torch.empty(2, 256)
    function(x, codes, scales, None, block=32, out=out)
    values = exact().dequantize(codes[:, 3:4].tolist(), scales[:, :1].tolist(), 1)
    bits = [exact().FORMATS["fp32"].encode(v) for (v,) in values]
    assert same(out[:1], floats(bits, "fp32"))


SHAPES = (
    "m=1,n=64,k=256",
    "m=3,n=300,k=4096,block=64",
    "m=1,n=33,k=272",
    "m=9,n=64,k=512",
    "m=16,n=100,k=1040",
    "m=31,n=33,k=20000",
    "m=32,n=64,k=128,block=128",
    "m=33,n=130,k=272",
    "m=200,n=384,k=384",
    "m=5,n=7,k=33,block=24",
)
"""Every design of the CUDA kernel: rows streamed and divided among blocks, tiles, and the one for odd shapes."""


def built(target, number, shape):
    """Names of what the CUDA kernel launches on that shape, each built for the target."""
    from assay.library.mx_linear.cuda import mx_linear

    workload = Workload.of(library.find_op("mx_linear"), shape)
    m, n, k, block = workload.sizes.m, workload.sizes.n, workload.sizes.k, workload.sizes.block
    x, out = torch.empty(m, k, dtype=TYPES[number]), torch.empty(m, n, dtype=TYPES[number])
    codes, scales = torch.empty(n, k, dtype=torch.int8), torch.empty(n, -(-k // block), dtype=torch.uint8)
    with backend("cuda").tracing(Target(target)) as launches:
        mx_linear(x, codes, scales, None, block=block, out=out, partial=torch.empty(PARTIAL))
    return {launch.artifact.name.split("<")[0] for launch in launches}


def test_every_design_of_the_cuda_linear_layer_builds():
    names = set().union(*(built("sm_90a", "bf16", shape) for shape in SHAPES))
    assert names == {"mx_linear_few", "mx_linear_sum", "mx_linear_many", "mx_linear_any"}


@pytest.mark.parametrize(("target", "number"), [("sm_80", "fp32"), ("sm_100", "fp16")])
def test_other_generations_are_built_for_too(target, number):
    for shape in ("m=1,n=64,k=4096", "m=64,n=64,k=64", "m=1,n=3,k=3"):
        assert built(target, number, shape)


def linear(language, drawn, workload):
    """What this language's kernel makes of drawn inputs, on the GPU."""
    function = importlib.import_module(f"assay.library.mx_linear.{language}").mx_linear
    there = [drawn[n].cuda() for n in ("x", "elements", "scales", "bias")]
    out = torch.full((workload.sizes.m, workload.sizes.n), math.nan, dtype=workload.dtype.torch, device="cuda")
    scratch = {"partial": torch.full((PARTIAL,), math.nan, device="cuda")} if language == "cuda" else {}
    function(*there, block=workload.sizes.block, out=out, **scratch)
    return {"out": out.cpu()}


def beyond_its_limit(language):
    """Workloads, over all designs, dtypes and kinds of values, in which the linear layer is wrong."""
    op, wrong = library.find_op("mx_linear"), []
    for number in ("fp32", "bf16", "fp16"):
        for shape in SHAPES:
            for values in ("normal", "wide", "special", "offset"):
                workload = Workload.of(op, f"{shape},dtype={number},values={values}")
                drawn = inputs.generate(workload)
                truth, plain = oracle.oracle(workload, drawn), oracle.baseline(workload, drawn)
                if found := judge.judge(linear(language, drawn, workload), judge.Measures(truth, plain, {})).finding:
                    wrong.append((str(workload), found.what))
    return wrong


@pytest.mark.gpu
@pytest.mark.parametrize("language", ["triton", "cuda"])
def test_every_design_of_the_linear_layer_stays_within_its_limit_on_the_gpu(language):
    assert beyond_its_limit(language) == []


@pytest.mark.gpu
@pytest.mark.parametrize("language", ["triton", "cuda"])
def test_the_tensor_cores_see_every_code_at_every_scale(language):
    """All 256 codes at all 256 scales, one to a row, through each design of a kernel: a code must not depend on whether
    subnormal 16-bit floats are kept on the way to the tensor cores."""
    mx_linear = importlib.import_module(f"assay.library.mx_linear.{language}").mx_linear
    scratch = {"partial": torch.empty(PARTIAL, device="cuda")} if language == "cuda" else {}
    codes = torch.zeros(65536, 64, dtype=torch.int8, device="cuda")
    codes[:, 40] = (torch.arange(65536) % 256 - 128).to(torch.int8)
    scales = torch.stack([torch.full((65536,), 127), torch.arange(65536) // 256], 1).to(torch.uint8).cuda()
    values = exact().dequantize(codes[:, 40:41].tolist(), scales[:, 1:].tolist(), 1)
    infinite = 254 * 256  # −128, which the format leaves unused, at the largest scale: no float32 holds it
    for number, form in exact().FORMATS.items():
        wanted = floats([form.encode(v) for (v,) in values], number)
        for m in (1, 9, 17, 40):
            x = torch.zeros(m, 64, dtype=TYPES[number], device="cuda")
            x[:, 40] = 1.0
            out = torch.empty(m, 65536, dtype=TYPES[number], device="cuda")
            mx_linear(x, codes, scales, None, block=32, out=out, **scratch)
            made = out[-1:].cpu()
            if language == "triton" and number != "bf16":  # x is cut into parts, and nothing times −2¹²⁸ is NaN
                assert made[0, infinite].isnan() or m == 1
                made[0, infinite] = wanted[0, infinite]
            assert same(made, wanted), (number, m)


@pytest.mark.parametrize("page", ["docs/mx.md", "conformance/README.md"])
def test_the_examples_give_what_they_show(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(str(ROOT / page), module_relative=False)
    assert result.attempted > 3 and result.failed == 0
