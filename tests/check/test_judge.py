"""The judge of numbers: sharp enough to see lower precision, blind to what rounding alone does."""

import math
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import inputs
from assay.catalog import library
from assay.check import figures, judge, oracle
from assay.dtype import dtype
from assay.workload import Workload

LOWER = {"fp32": torch.bfloat16, "bf16": torch.bfloat16, "fp16": torch.float16}


def verdict(op, workload, make, drawn=None):
    drawn = drawn or inputs.generate(workload)
    truth = oracle.oracle(workload, drawn)
    plain = oracle.baseline(workload, drawn)
    return judge.judge(make(op, workload, drawn, truth), judge.Measures(truth, plain, {}), controls=True)


def rounded(op, workload, drawn, truth):
    return {n: truth.exact[n].to(workload.dtype_of(t).torch) for n, t in op.outputs.items()}


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
@settings(max_examples=300)
def test_ulp_is_the_spacing_of_the_format(value):
    expected = float(np.spacing(np.float32(abs(value)))) if abs(value) < 3.4028234e38 else 2.0**104
    if abs(value) < 2.0**-126:
        expected = 2.0**-149
    assert float(oracle.ulp(torch.tensor([value], dtype=torch.float64), dtype("fp32"))) == expected


@pytest.mark.parametrize("name", sorted(library.ops()))
@pytest.mark.parametrize("number", ["fp32", "bf16", "fp16"])
def test_the_rounded_oracle_passes_and_every_control_is_rejected(name, number):
    op = library.ops()[name]
    for values in ("normal", "offset", "wide"):
        workload = Workload.of(
            op, ",".join(f"{a}={min(x.max, 13)}" for a, x in op.axes.items()) + f",dtype={number},values={values}"
        )
        result = verdict(op, workload, rounded)
        assert result.finding is None, (str(workload), result.finding)
        assert all(result.controls.values()), (str(workload), result.controls)


@pytest.mark.parametrize("name", sorted(library.ops()))
@pytest.mark.parametrize("number", ["fp32", "bf16", "fp16"])
def test_zeros_a_constant_and_a_shuffle_fail(name, number):
    op = library.ops()[name]
    sizes = "".join(f"{a}={min(x.max, 11)}," for a, x in op.axes.items())
    workload = Workload.of(op, f"{sizes}dtype={number},seed=3")
    for wrong in (
        torch.zeros_like,
        lambda t: torch.full_like(t, float(t.float().median())),
        lambda t: t.flatten().roll(1).view_as(t),
    ):
        honest = verdict(op, workload, rounded)

        def cheat(*args, wrong=wrong):
            return {n: wrong(v) for n, v in rounded(*args).items()}

        if (
            any(v.numel() > 1 for v in rounded(op, workload, *_truth(op, workload)).values())
            or wrong is torch.zeros_like
        ):
            assert honest.finding is None
            assert verdict(op, workload, cheat).finding is not None


def _truth(op, workload):
    drawn = inputs.generate(workload)
    return drawn, oracle.oracle(workload, drawn)


@pytest.mark.parametrize(
    "name", ["gelu", "silu", "layernorm", "softmax", "rmsnorm", "ln_gelu", "euclidean_distance", "conv2d"]
)
@pytest.mark.parametrize("number", ["fp32", "bf16", "fp16"])
def test_lower_precision_inside_is_told_apart(name, number):
    """Every step rounded to bf16 (fp16 for fp16): right to the eye, wrong by the format's own measure."""
    op = library.ops()[name]
    sizes = ",".join(
        f"{a}={min(x.max, 5000 if len(op.axes) == 1 else 64 if len(op.axes) == 2 else 6)}" for a, x in op.axes.items()
    )
    workload = Workload.of(op, f"{sizes},dtype={number}")

    def stepwise(op, workload, drawn, truth):
        low = LOWER[number]
        return {
            "out": _stepwise(name, {k: v.to(low) for k, v in drawn.items()}, workload, low).to(workload.dtype.torch)
        }

    assert verdict(op, workload, stepwise).finding is not None


def _stepwise(name, x, workload, low):
    """The op with every intermediate rounded to `low`."""
    if name == "gelu":
        return x["x"] * (((x["x"] * 0.70710678).to(low).float().erf().to(low) + 1) * 0.5)
    if name == "silu":
        return x["x"] / (1 + (-x["x"]).exp())
    if name == "softmax":
        e = (x["x"] - x["x"].amax(-1, keepdim=True)).exp()
        return e / _sum(e, low)
    if name == "rmsnorm":
        return x["x"] / ((_sum(x["x"] * x["x"], low) / x["x"].shape[1] + workload.sizes.eps).sqrt()) * x["weight"]
    if name in ("layernorm", "ln_gelu"):
        centred = x["x"] - _sum(x["x"], low) / x["x"].shape[1]
        y = (
            centred / (_sum(centred * centred, low) / x["x"].shape[1] + workload.sizes.eps).sqrt() * x["weight"]
            + x["bias"]
        )
        return y if name == "layernorm" else y * ((y * 0.70710678).float().erf().to(low) + 1) * 0.5
    if name == "euclidean_distance":
        d = x["x"] - x["y"]
        return _sum(d * d, low)[:, 0].sqrt()
    return torch.nn.functional.conv2d(x["x"].float(), x["weight"].float(), None).to(low) + x["bias"][:, None, None]


def _sum(x, low):
    total = torch.zeros_like(x[:, :1])
    for j in range(x.shape[1]):
        total = (total + x[:, j : j + 1]).to(low)
    return total


def test_a_nan_out_of_place_is_found_and_named():
    op = library.find_op("gelu")
    workload = Workload.of(op, "n=10000,dtype=fp32,values=special")

    def swallow(op, workload, drawn, truth):
        return {"out": rounded(op, workload, drawn, truth)["out"].nan_to_num(0.0)}

    found = verdict(op, workload, swallow).finding
    assert found is not None and found.detector == "nonfinite" and "must be nan" in found.what


def test_one_element_that_is_too_far_off_is_named_with_its_right_value():
    workload = Workload.of(library.find_op("gelu"), "n=1,dtype=fp32")

    def wrong(op, workload, drawn, truth, by=1e-4):
        return {n: v * (1 + by) for n, v in rounded(op, workload, drawn, truth).items()}

    found = verdict(workload.op, workload, wrong).finding
    assert re.fullmatch(r"`out`\[0\] is \S+, must be \S+ \([\d.]+× its tolerance\)", found.what)
    assert len(found.details) == 1
    assert re.fullmatch(r"  error   [\d.e+]+ rounding units; plain PyTorch's largest is [\d.]+", found.details[0])
    far = verdict(workload.op, workload, partial(wrong, by=1.0)).finding
    assert far.details[0].startswith("  error   over a million rounding units; plain")


def test_a_figure_that_many_results_share_is_named_in_words():
    workload = Workload.of(library.find_op("gelu"), "n=4000,dtype=bf16")

    def off_by_a_unit(op, workload, drawn, truth):
        out = rounded(op, workload, drawn, truth)["out"]
        return {"out": torch.where(torch.arange(4000) % 3 > 0, torch.nextafter(out, torch.zeros_like(out)), out)}

    found = verdict(workload.op, workload, off_by_a_unit).finding
    figure = re.search(r" \((.*): [\d.]+× its tolerance\)$", found.what)[1]
    assert figure in judge.NAMES.values() and figure != judge.NAMES["max"]
    assert re.match(rf" +the {figure} of results between \S+ and \S+ in absolute value is ", found.details[1])


@pytest.mark.parametrize(
    ("low", "high", "words"), [(0.0017, 2.76, "between 0.0017 and 2.76"), (1.412, 1.4121, "around 1.41")]
)
def test_a_range_whose_ends_look_alike_is_one_number(low, high, words):
    assert figures.of_results(low, high) == f"of results {words} in absolute value"


def test_an_extra_nan_is_found_too():
    op = library.find_op("silu")
    workload = Workload.of(op, "n=50,dtype=bf16")

    def spoil(op, workload, drawn, truth):
        out = rounded(op, workload, drawn, truth)["out"]
        out[7] = math.nan
        return {"out": out}

    found = verdict(op, workload, spoil).finding
    assert found is not None and found.detector == "nonfinite" and "`out`[7]" in found.what


def test_a_convolution_by_fft_is_less_accurate_and_not_wrong():
    """Its error is that of the largest results everywhere, also where the result is zero."""
    op = library.find_op("conv2d")
    workload = Workload.of(op, "n=4,c=2,h=7,w=13,k=384,r=5,s=7,dtype=fp32,seed=1632,values=zeros,without=bias")

    def transformed(op, workload, drawn, truth, scale=1.0):
        x, weight, size = drawn["x"], drawn["weight"], (16, 32)
        products = torch.fft.rfft2(x, size)[:, None] * torch.fft.rfft2(weight, size).conj()[None]
        full = torch.fft.irfft2(products.sum(2), size)
        rows, columns = (torch.arange(-1, n + 1 - k + 1) for n, k in ((7, 5), (13, 7)))  # padded by 1
        return {"out": scale * full[:, :, rows[:, None], columns]}

    found = verdict(op, workload, transformed).finding
    assert found.detector == "values" and found.as_rounded and not found.less_accurate
    assert not verdict(op, workload, partial(transformed, scale=1.0001)).finding.as_rounded


@pytest.mark.parametrize(
    ("plain", "kernel", "excused"),
    [
        ([math.nan, 1.0, math.inf], [math.nan, 1.0, math.inf], True),
        ([math.inf, 1.0, math.inf], [math.nan, 1.0, math.inf], False),  # PyTorch has it right
        ([math.nan, math.nan, math.inf], [math.nan, math.nan, math.inf], False),  # the oracle is finite
        ([math.nan, 1.0, math.inf], [0.0, 1.0, math.inf], False),  # neither
        ([math.nan, 1.0, math.inf], [math.nan, 1.0, -math.inf], False),  # another element
        ([math.inf, 1.0, math.inf], [3e38, 1.0, math.inf], False),  # large, and not infinite
    ],
)
def test_a_nan_for_an_infinity_is_excused_only_where_pytorch_has_it_too(plain, kernel, excused):
    exact = torch.tensor([math.inf, 1.0, math.inf], dtype=torch.float64)
    found = judge._non_finite("out", torch.tensor(kernel), exact, exact, dtype("bf16"), torch.tensor(plain))
    assert (found == "") == excused


@pytest.mark.parametrize(("got", "passes"), [(math.inf, True), (60000.0, True), (0.0, False)])
@pytest.mark.parametrize("flip", [1, -1])
def test_a_result_that_overflows_is_infinite_or_large_and_has_its_sign(got, passes, flip):
    for size, kernel, right in (
        (70000.0, flip * got, passes),
        (70000.0, -flip * got, False),
        (1e6, flip * got, math.isinf(got)),
    ):
        exact = torch.tensor([flip * size, 1.0], dtype=torch.float64)
        found = judge._non_finite("out", torch.tensor([kernel, 1.0]), exact.half().double(), exact, dtype("fp16"))
        assert (found == "") == right, (size, kernel)


@pytest.mark.parametrize("number", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("shape", ["silu n=4000", "relu n=4000", "axpy n=4000", "row_scale rows=40,cols=100"])
def test_a_finite_answer_to_an_infinite_one_is_wrong(shape, number):
    """0 wherever the oracle is infinite."""
    name, _, sizes = shape.partition(" ")
    op = library.find_op(name)
    workload = Workload.of(op, f"{sizes},dtype={number},values=special")
    assert any(bool(v.isinf().any()) for v in oracle.oracle(workload, inputs.generate(workload)).exact.values())

    def finite(op, workload, drawn, truth):
        return {n: v.masked_fill(v.isinf(), 0.0) for n, v in rounded(op, workload, drawn, truth).items()}

    found = verdict(op, workload, finite).finding
    assert found is not None and found.detector == "nonfinite"
    assert verdict(op, workload, rounded).finding is None


@pytest.mark.parametrize("k", [8, 9, 31])
def test_pytorch_s_own_products_pass_with_an_infinity_in_the_last_term(k):
    """An odd number of bf16 terms is padded with a zero by some libraries on some processors."""
    op = library.find_op("mx_linear")
    workload = Workload.of(op, f"m=23,n=20,k={k},block=32,dtype=bf16")

    def product(op, workload, drawn, truth):
        return {"out": op.reference(**drawn, block=32)}

    drawn = inputs.generate(workload)
    drawn["x"][9, -1] = math.inf
    assert verdict(op, workload, product, drawn).finding is None


def test_a_kernel_that_rounds_its_inputs_to_half_fails_where_pytorch_itself_is_far_off():
    """PyTorch's fp32 GELU is off by millions of plain ulps near −6; that must not excuse anyone."""
    op = library.find_op("gelu")
    workload = Workload.of(op, "n=4096,dtype=fp32,values=wide")

    def half(op, workload, drawn, truth):
        return {"out": torch.nn.functional.gelu(drawn["x"].half().float())}

    assert verdict(op, workload, half).finding.detector == "values"


def test_a_reference_that_makes_pytorch_switch_onednn_off_does_not_do_so_for_the_next():
    """PyTorch does it where a product in bf16 fails, and computes convolutions in another way from then on."""
    op = library.ops()["gelu"]
    one = Workload.of(op, "n=8,dtype=fp32")

    def reference(x):
        torch._C._set_mkldnn_enabled(False)
        return x

    assert torch._C._get_mkldnn_enabled()
    oracle.baseline(one.replace(op=replace(op, reference=reference)), inputs.generate(one))
    assert torch._C._get_mkldnn_enabled()


def test_two_different_orders_of_summation_both_pass():
    op = library.find_op("layernorm")
    workload = Workload.of(op, "rows=16,cols=1000,dtype=fp32,values=offset")

    def reversed_order(op, workload, drawn, truth):
        flipped = {"x": drawn["x"].flip(-1), "weight": drawn["weight"].flip(-1), "bias": drawn["bias"].flip(-1)}
        return {"out": oracle.baseline(workload, flipped)["out"].flip(-1)}

    assert verdict(op, workload, reversed_order).finding is None


@pytest.mark.parametrize("n", [1000, 10_000])
def test_a_float32_sum_of_values_rounded_to_float16_is_seen(n):
    op = library.ops()["sum"]
    caught = 0
    for seed in range(10):
        workload = Workload.of(op, f"n={n},dtype=fp32,seed={seed}")
        result = verdict(op, workload, lambda op, w, drawn, truth: {"out": drawn["x"].half().double().sum().float()})
        caught += result.finding is not None
    assert caught >= 8  # in some draws the roundings cancel


def test_what_float32_may_lose_is_counted_from_the_formula():
    sum_, axpy = library.ops()["sum"], library.ops()["axpy"]
    assert axpy.lost() == 2 and sum_.lost() == 1
    assert Workload.of(axpy, "n=1000,dtype=fp32").lost_in_sums == {"out": 0}
    assert Workload.of(sum_, "n=0,dtype=fp32").lost_in_sums == {"out": 0}
    assert Workload.of(sum_, "n=1024,dtype=fp32").lost_in_sums == {"out": 0.75 * 10}
    backward = library.ops()["layernorm_backward"]
    lost = Workload.of(backward, "rows=1024,cols=16,dtype=fp32").lost_in_sums
    assert lost == {"out": 0.75 * 4, "dweight": 0.75 * 10, "dbias": 0.75 * 10}
