"""Triton's interpreter and Numba's simulator, as a worker patches them, give what a GPU gives. Where the expected
values come from an H200, `test_the_interpreter_agrees_with_this_gpu` repeats the comparison on whatever GPU is here."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.backends.triton_interpreter import bounds

SUPPORT = Path(__file__).parents[1] / "support"


def _run(script, *arguments, env):
    command = [sys.executable, str(SUPPORT / script), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(SUPPORT.parents[1] / "src")} | env
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def triton(tmp_path_factory):
    file = tmp_path_factory.mktemp("facts") / "triton.pt"
    _run("triton_facts.py", file, "cpu", env={"TRITON_INTERPRET": "1"})
    return torch.load(file)


@pytest.fixture(scope="module")
def numba(tmp_path_factory):
    file = tmp_path_factory.mktemp("facts") / "numba.pickle"
    _run("numba_facts.py", file, env={"NUMBA_ENABLE_CUDASIM": "1"})
    return pickle.loads(file.read_bytes())


def _dot_error(results, name, k, dtype=torch.float32):
    """The root mean square of the error, as a part of Σ|a·b| + |c|."""
    a, b, c = (t.to(dtype).double() if i < 2 else t.double() for i, t in enumerate(results[f"operands/{k}"]))
    exact, scale = a @ b + c, a.abs() @ b.abs() + c.abs()
    return ((results[f"dot/{name}/{k}"].double() - exact) / scale).square().mean().sqrt().item()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype", "on_an_h200"),
    [
        ("None/float32", torch.float32, 7.4e-5),
        ("tf32/float32", torch.float32, 7.4e-5),
        ("bf16x3/float32", torch.float32, 4.2e-7),
        ("tf32x3/float32", torch.float32, 6.3e-8),
        ("bf16x6/float32", torch.float32, 2.3e-8),
        ("ieee/float32", torch.float32, 2.8e-8),
        ("None/float16", torch.float16, 3.3e-8),
        ("None/bfloat16", torch.bfloat16, 2.3e-8),
        ("None/float16/half", torch.float16, 6.5e-5),
    ],
)
def test_a_dot_is_as_imprecise_as_on_a_gpu(triton, name, dtype, on_an_h200):
    error = _dot_error(triton, name, 256, dtype)
    assert on_an_h200 / 1.5 < error < on_an_h200 * 1.5


@pytest.mark.slow
def test_the_dot_of_int8_is_exact(triton):
    a, b, c = triton["operands/256"]
    expected = (20 * a).to(torch.int8).long() @ (20 * b).to(torch.int8).long() + c.int()
    assert torch.equal(triton["dot/None/int8/256"].long(), expected)


@pytest.mark.slow
def test_a_number_divided_by_itself_is_not_always_one(triton):
    """`/` is `div.full.f32`; `tl.div_rn` is exact. On an H200 a tenth of the quotients is off by an ulp."""
    share = (triton["divide"] == 1).float().mean()
    assert 0.8 < share < 0.95
    assert ((triton["divide"] - 1).abs() <= 2**-23).all()
    assert (triton["div_rn"] == 1).all()
    assert triton["divide/tiny"].isfinite().all()  # a subnormal divisor, though its reciprocal is infinite


@pytest.mark.slow
def test_exp_loses_more_the_larger_its_argument_is(triton):
    x = 10 * _odd_values()
    exact = x.double().exp()
    error = ((triton["exp"].double() - exact) / exact).abs()
    small, large = (x.abs() < 1), (x.abs() > 15) & (x < 80) & (x > -80)
    assert error[small].max() < 4e-7 < 8e-7 < error[large].max() < 5e-6


def _odd_values(n=1024):
    x = torch.randn(n, generator=torch.Generator().manual_seed(1))
    x[:8] = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e-40, -1e-40, 0.0, -0.0, 3e9])
    return x


@pytest.mark.slow
def test_subnormals_count_as_zero_where_ptx_says_ftz(triton):
    assert triton["sqrt"][3] == 0 and triton["rsqrt"][3] == float("inf")
    assert triton["floor"][4] == 0 and triton["floor"][4].signbit()
    assert (triton["exp2/subnormal"] == 0).all()


@pytest.mark.slow
def test_a_maximum_returns_the_number_beside_a_nan(triton):
    assert triton["maximum"].isfinite()[0] and triton["minimum"].isfinite()[0]
    assert triton["maximum_nan"].isnan()[0]
    assert triton["clamp"][0] == -1
    assert not triton["maximum/zeros"].signbit().any()  # of +0 and −0, +0 is the larger


@pytest.mark.slow
def test_a_product_in_a_sum_is_rounded_once(triton):
    """x · x − y · y of equal x and y: the fused product's own rounding error, up to half an ulp of x²."""
    x = torch.randn(1024, generator=torch.Generator().manual_seed(1))
    assert (triton["squares"] != 0).float().mean() > 0.9
    exact = x.double() ** 2 - (x**2).double()
    assert torch.equal(triton["squares"].double(), exact.float().double())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("kind", ["add", "subtract", "multiply", "maximum", "less"])
def test_16_bit_numbers_are_computed_as_numbers(triton, kind, dtype):
    narrow = {"bf16": torch.bfloat16, "fp16": torch.float16}[dtype]
    x, y = (torch.randn(1024, generator=torch.Generator().manual_seed(s)).to(narrow) for s in (1, 2))
    expected = {
        "add": x + y,
        "subtract": x - y,
        "multiply": x * y,
        "maximum": torch.maximum(x, y),
        "less": torch.minimum(x, y),
    }[kind]
    assert torch.equal(triton[f"{kind}/{dtype}"], expected.float())


@pytest.mark.slow
def test_casts_round_saturate_and_keep_bf16_a_number(triton):
    x = 1000 * _odd_values()
    assert triton["int32"][:3].tolist() == [0, 2**31 - 1, -(2**31)] and triton["int32"][7] == 2**31 - 1
    assert triton["int16"][:3].tolist() == [0, 2**15 - 1, -(2**15)]
    assert triton["int64"][:3].tolist() == [-(2**63), 2**63 - 1, -(2**63)]
    assert torch.equal(triton["int32"][8:], x[8:].int())
    assert torch.equal(triton["bf16"][1:], _odd_values().bfloat16()[1:])
    integers = (1e6 * torch.randn(1024, generator=torch.Generator().manual_seed(1))).int()
    assert torch.equal(triton["bf16/int32"], integers.bfloat16())
    hundred = (100 * torch.randn(1024, generator=torch.Generator().manual_seed(1))).bfloat16()
    assert torch.equal(triton["int32/bf16"], hundred.int())
    assert triton["fp8e4nv"].abs()[1:].max() == 448  # saturated, not NaN
    small = 0.01 * torch.randn(1024, generator=torch.Generator().manual_seed(1))
    assert torch.equal(triton["fp8e4nv/small"], small.to(torch.float8_e4m3fn).float())


@pytest.mark.slow
def test_16_bit_sums_are_made_in_16_bits(triton):
    x = torch.randn(1024, generator=torch.Generator().manual_seed(3))
    for dtype, name, ulp in ((torch.float16, "fp16", 2**-10), (torch.bfloat16, "bf16", 2**-7)):
        exact = x.to(dtype).double().sum()
        error = (triton[f"sum/{name}"][0].double() - exact).abs() / exact.abs()
        assert ulp / 8 < error < 8 * ulp
        assert triton[f"max/{name}"][0] == x.to(dtype).max().float()
        assert triton[f"argmax/{name}"][0] == x.to(dtype).argmax()
        assert torch.equal(triton[f"sort/{name}"], x.to(dtype).sort().values.float())
    assert (triton["sum/int8"] == 102400).all()


@pytest.mark.slow
def test_a_scan_needs_an_associative_function(triton):
    x = torch.randn(1024, generator=torch.Generator().manual_seed(3)).double()
    right = [x[0].item()]
    for value in x[1:].tolist():
        right.append(0.5 * right[-1] + value)
    right = torch.tensor(right, dtype=torch.float64)
    assert torch.allclose(triton["recurrence"].double(), right, atol=1e-5)  # (a, b) pairs: associative
    assert (triton["leaky"].double() - right).abs().max() > 0.1  # old / 2 + new: not
    assert torch.allclose(triton["cumsum"].double(), x.cumsum(0), atol=1e-4)
    assert torch.allclose(triton["cumsum_reverse"].double(), x.flip(0).cumsum(0).flip(0), atol=1e-4)
    assert torch.allclose(triton["product"][0].double(), (1 + 0.1 * x.float()).double().prod(), rtol=1e-5)


@pytest.mark.slow
def test_lanes_that_a_mask_switched_off_are_undefined(triton):
    x = torch.randn(1024, generator=torch.Generator().manual_seed(4))
    assert torch.equal(triton["masked/elementwise"][:1000], 2 * x[:1000])
    assert not (triton["masked/sum"][0] - x[:1000].sum()).abs() < 1e30
    assert triton["masked/max"][0] > 1e30
    assert torch.allclose(triton["masked/other"][0], x[:1000].sum(), atol=1e-4)
    beyond = triton["masked/block"][1000:]
    assert beyond.isnan().any() and (beyond > 1e30).any() and (beyond < -1e30).any()
    assert triton["masked/block_nan"][1000:].isnan().all() and triton["masked/block_nan/bf16"][1000:].isnan().all()


@pytest.mark.slow
def test_arguments_arrive_with_the_types_a_gpu_gives_them(triton):
    x = torch.randn(1024, generator=torch.Generator().manual_seed(4))
    tenth = torch.tensor(0.1)
    assert torch.equal(triton["scalars"], x.half().float() * tenth * 2)  # fp16 · fp32 is fp32, and a bool arrives
    assert torch.equal(triton["float_argument/fp64"], x.double() * tenth.double())
    assert "no attribute 'to'" in triton["one"]  # 1 is compiled in as a constant
    assert torch.equal(triton["two"], 2 * x)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("grid", "65535 programs at most"),
        ("option", "num_wraps was specified but unrecognised"),
        ("warps", "num_warps must be a power of 2"),
        ("condition", "a condition on a block"),
    ],
)
def test_what_a_gpu_refuses_is_refused(triton, name, words):
    assert words in triton[name]


@pytest.mark.slow
def test_and_or_and_not_of_blocks_are_elementwise(triton):
    x, y = _odd_values(), torch.randn(1024, generator=torch.Generator().manual_seed(2))
    assert torch.equal(triton["and"], ((x > 0) & (y > 0)).float())
    assert torch.equal(triton["or"], ((x > 0) | (y > 0)).float())
    plain = torch.randn(1024, generator=torch.Generator().manual_seed(1))
    assert torch.equal(triton["not"], (~(plain > 0)).float())


@pytest.mark.slow
def test_libdevice_is_there(triton):
    x = 10 * _odd_values()
    assert torch.allclose(triton["tanh"][1:], x.tanh()[1:], atol=1e-6)
    exact = x.double().exp()
    error = ((triton["fast_expf"].double() - exact) / exact)[(x.abs() > 5) & (x.abs() < 30)].abs().max()
    assert 5e-7 < error < 5e-6
    assert "tensor" in str(type(triton["pow"])).lower()


@pytest.mark.slow
def test_atomic_sums_of_all_float_types(triton):
    x = torch.randn(1024, generator=torch.Generator().manual_seed(4))[:64]
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 2e-2), (torch.bfloat16, 2e-1)):
        expected = x.to(dtype).double().reshape(8, 8).sum(0)
        assert (triton[f"atomic/{dtype}"].double() - expected).abs().max() < tolerance


@pytest.mark.slow
def test_numba_types_python_floats_as_float64(numba):
    x = numba["x"][:32]
    for name in ("literals", "globals_", "argument"):
        assert np.array_equal(numba[name], x.astype(np.float64) * 0.1)
    assert 0 < np.abs(numba["narrow_functions"]).max() < 1e-6  # math.exp of a float32 is a float32


@pytest.mark.slow
def test_numba_functions_beyond_their_domain_do_not_raise(numba):
    assert numba["beyond"][:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(numba["beyond"][2]) and numba["beyond"][3] == np.inf
    assert (numba["extremes"] == 0).all()


@pytest.mark.slow
def test_numba_computes_with_bytes_in_64_bits(numba):
    assert np.array_equal(numba["bytes_"], np.arange(200, 232) * 301)


@pytest.mark.slow
def test_numba_memory_that_nobody_wrote_is_visible(numba):
    shared = numba["unwritten_shared"]
    assert np.array_equal(shared[:16], numba["x"][:16])
    assert not (np.abs(shared[16:]) < 1e30).any()
    assert not (np.abs(numba["unwritten_local"]) < 1e30).any()
    second_block = numba["left_by_the_last_block"][32:]
    assert not (np.abs(second_block) < 1e30).any()


@pytest.mark.slow
def test_numba_shared_arrays_are_told_apart_and_bounded(numba):
    assert np.array_equal(numba["two_on_one_line"], numba["x"][:32])
    assert "49152 at most" in numba["too_much_shared"]


@pytest.mark.slow
def test_numba_warps_exchange_values(numba):
    assert np.isclose(numba["warp_sum"][0], numba["x"][:32].sum(), atol=1e-5)
    assert (numba["ballots"] == (numba["x"][:32] > 0).sum()).all()


@pytest.mark.slow
def test_numba_intrinsics(numba):
    values = np.arange(-16, 16, dtype=np.int32)
    bits = [int(v) & 0xFFFFFFFF for v in values]
    expected = [(32 - b.bit_length()) * 1000 + b.bit_count() * 100 + (b & -b).bit_length() for b in bits]
    assert numba["bit_functions"].tolist() == expected
    x = numba["x"][:32]
    assert np.array_equal(numba["fused"], (x.astype(np.float64) ** 2 - (x * x)).astype(np.float32))
    assert not np.array_equal(numba["fast"], np.exp(x.astype(np.float64)).astype(np.float32))
    assert np.allclose(numba["fast"], np.exp(x), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["large_block", "large_grid", "empty_grid"])
def test_numba_launches_that_a_gpu_refuses_are_refused(numba, name):
    assert numba[name].startswith("ValueError")
    assert not isinstance(numba["compiler_options"], str)


@pytest.mark.slow
@pytest.mark.gpu
def test_the_interpreter_agrees_with_this_gpu(triton, tmp_path):
    """Bit for bit where a result is exact, and to the error of the instruction where it is approximate."""
    _run("triton_facts.py", tmp_path / "gpu.pt", "cuda", env={})
    gpu = torch.load(tmp_path / "gpu.pt")
    exact = [
        "squares",
        "maximum",
        "minimum",
        "maximum_nan",
        "and",
        "or",
        "not",
        "remainder",
        "floor",
        "clamp",
        "int16",
        "int32",
        "int64",
        "bf16",
        "bf16/int32",
        "int32/bf16",
        "fp8e4nv",
        "fp8e4nv/small",
        "sort",
        "sort/bf16",
        "argmax",
        "sum/int8",
        "rand",
        "scalars",
        "float_argument/fp64",
        "two",
        "dot/ieee/float32/256",
        "dot/None/int8/256",
        "add/bf16",
        "subtract/bf16",
        "multiply/bf16",
        "fused/bf16",
        "fused/fp16",
        "fused",
    ]
    differing = [n for n in exact if not torch.equal(gpu[n].nan_to_num(7.0), triton[n].nan_to_num(7.0))]
    assert not differing
    for name in ("divide", "sqrt", "rsqrt", "exp2", "erf", "tanh", "sin", "log", "exp", "fast_expf"):
        usual = gpu[name].isfinite() & triton[name].isfinite() & (gpu[name].abs() > 1e-30)
        error = ((gpu[name] - triton[name]).abs() / gpu[name].abs())[usual].max()
        assert error < (1e-5 if name in ("exp", "fast_expf", "sin") else 5e-7), name
    # A running sum is added up in another order there, and may come close to zero.
    assert (gpu["cumsum"] - triton["cumsum"]).abs().max() < 1e-6 * gpu["cumsum"].diff().abs().sum()


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 200), st.booleans()), min_size=1, max_size=40),
)
def test_a_read_in_a_band_is_seen_and_no_other(bands, reads):
    """Bands of some length, each so far behind the one before: none, where two tensors lie side by side."""
    at, placed = 20, []
    for number, (length, gap) in enumerate(bands):
        placed.append((at, at + length, f"in band {number}"))
        at += length + gap
    bounds.watch(reversed(placed))
    addresses, active = zip(*reads, strict=True)
    bounds.look(np.array(addresses, np.uint64), np.array(active))
    expected = {name: sum(a and begin <= n < end for n, a in reads) for begin, end, name in placed}
    outside = bounds.reads_outside()
    assert set(filter(None, outside.split(", "))) == {
        f"{count} element{'s' * (count > 1)} {name}" for name, count in expected.items() if count
    }
    bounds.look(np.array([20], np.uint64), np.array([True]))
    assert bounds.reads_outside() == outside, "reads are not recorded after the report"
