"""Attention: an op whose limit tells right from wrong, kernels that pass or say why not, a preset over two verbs."""

import io
import math
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

import assay
from assay import coverage
from assay.backends import backend
from assay.catalog import library
from assay.check import judge, oracle
from assay.check.exploring import EFFORTS
from assay.check.slices import judged_in_slices
from assay.cli import bench as table
from assay.coverage.constants import Constants
from assay.dtype import dtype
from assay.errors import Unsupported, UsageError
from assay.inputs import generate
from assay.library.attention.op import seen
from assay.models.studies.attention import Options, attention, plan
from assay.record import Record, Status, read
from assay.report.charts import attention as chart
from assay.report.export import flat
from assay.workload import Workload

OP = library.ops()["attention"]
OLD = Path(__file__).parents[2] / "results" / "h200" / "models" / "attention.json"
pytestmark = pytest.mark.usefixtures("one_thread")


def naive(q, k, v, causal, scale=1.0, diagonal=1):
    scores = q @ k.mT * (scale / math.sqrt(q.shape[-1]))
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(diagonal).bool(), -math.inf)
    return scores.softmax(-1) @ v


def judged(text, answer):
    """The verdict on what `answer` makes of a workload's inputs."""
    workload = Workload.of(OP, text)
    inputs = generate(workload)
    truth, plain = oracle.oracle(workload, inputs), oracle.baseline(workload, inputs)
    out = answer(*(v.float() for v in inputs.values()), workload.sizes.causal).to(inputs["q"].dtype)
    return judge.judge({"out": out}, judge.Measures(truth, plain, {})).finding


# The op


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 2), st.integers(1, 12), st.integers(1, 12), st.sampled_from([1, 8, 33]), st.booleans())
def test_the_reference_is_pytorchs_attention_with_as_many_queries_as_keys_or_not(heads, queries, keys, dim, causal):
    torch.manual_seed(queries)
    q, k, v = (torch.randn(2, heads, n, dim, dtype=torch.float64) for n in (queries, keys, keys))
    known = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    torch.testing.assert_close(OP.reference(q, k, v, causal=int(causal)), known, rtol=1e-12, atol=1e-13)


@given(st.integers(1, 40), st.integers(1, 40), st.booleans())
def test_operations_count_the_pairs_that_are_seen(queries, keys, causal):
    workload = Workload.of(OP, f"batch=2,heads=3,queries={queries},keys={keys},dim=5,causal={int(causal)}")
    pairs = sum(1 for i in range(queries) for j in range(keys) if not causal or j <= i)
    assert seen(workload.sizes) == pairs and workload.operations == 4 * 2 * 3 * 5 * pairs
    assert workload.bytes == 4 * 2 * 3 * 5 * (2 * queries + 2 * keys)


@pytest.mark.parametrize("number", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("causal", [0, 1])
def test_the_formula_is_right_and_a_lost_key_another_scale_and_the_next_key_are_not(number, causal):
    text = f"batch=1,heads=2,queries=60,keys=60,dim=24,causal={causal},dtype={number}"
    assert judged(text, naive) is None
    wrong = {
        "the last key is lost": lambda q, k, v, c: naive(q, k[..., :-1, :], v[..., :-1, :], c),
        "scaled by 1.05 too much": lambda q, k, v, c: naive(q, k, v, c, scale=1.05),
        "a key too many or too few is masked": lambda q, k, v, c: naive(q, k, v, 1, diagonal=2),
    }
    for what, answer in wrong.items():
        found = judged(text, answer)
        assert found is not None and found.detector == "values", what


def test_tensor_cores_tf32_is_no_float32():
    def cut(x):
        return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)

    text = "batch=1,heads=2,queries=40,keys=300,dim=64,dtype=fp32"
    assert judged(text, naive) is None
    assert judged(text, lambda q, k, v, c: naive(cut(q), cut(k), v, c)).detector == "values"


def test_weights_rounded_to_16_bits_are_honest_where_the_values_cancel():
    """Two keys whose weighted values nearly cancel: the result is far smaller than what was rounded."""
    text = "batch=2,heads=6,queries=14,keys=2,dim=2,causal=0,dtype=bf16,seed=1499"

    def rounded(q, k, v, causal):
        return (q @ k.mT / math.sqrt(2)).softmax(-1).bfloat16().float() @ v

    assert judged(text, rounded) is None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dim", [7, 85])
def test_queries_and_keys_may_be_scaled_before_they_are_multiplied(dim, seed):
    """Equal elements have equal rounding errors, which do not cancel out. PyTorch's own kernel does it this way."""

    def scaled(q, k, v, causal):
        root = math.sqrt(1 / math.sqrt(dim))
        return naive(q * root, k * root, v, causal, scale=math.sqrt(dim))

    assert (
        judged(f"batch=1,heads=2,queries=64,keys=37,dim={dim},dtype=fp32,values=constant,seed={seed}", scaled) is None
    )


@pytest.mark.parametrize("number", ["bf16", "fp16"])
@pytest.mark.parametrize("kind", ["normal", "wide", "halfway"])
def test_scores_may_be_rounded_to_16_bits_twice(kind, number):
    text = f"batch=5,heads=1,queries=105,keys=288,dim=79,dtype={number},values={kind}"
    in_16_bits = {"bf16": torch.bfloat16, "fp16": torch.float16}[number]

    def rounded(q, k, v, causal):
        return naive(q.to(in_16_bits), k.to(in_16_bits), v.to(in_16_bits), causal)

    assert judged(text, rounded) is None


def test_one_wrong_head_of_many_is_found_in_slices():
    workload = Workload.of(OP, "batch=2,heads=32,queries=9,keys=9,dim=4")
    inputs = generate(workload)
    right = OP.reference(*inputs.values(), causal=1)
    wrong = right.clone()
    wrong[:, 31] += 1e-3
    assert judged_in_slices(workload, inputs, {"out": right}, {}).finding is None
    assert "slice of heads from" in judged_in_slices(workload, inputs, {"out": wrong}, {}).finding.what


def test_an_interpreter_gets_few_problems_of_many_lengths():
    planned = coverage.plan(OP, dtype("fp32"), EFFORTS["triton-interpret"], constants=Constants((128, 64)))
    sizes = [dict(row.workload.axes) for row in planned.rows]
    assert all(s["batch"] <= 32 and s["heads"] <= 32 for s in sizes)
    assert any(s["queries"] == 129 for s in sizes) and any(s["keys"] == 129 for s in sizes)
    many = sum(s["batch"] * s["heads"] > 32 for s in sizes)
    assert many < len(sizes) / 3


# The kernels


def test_the_kernels_stand_in_the_library():
    names = {k.name for k in library.kernels() if k.address.op == "attention"}
    assert names >= {f"attention/{b}" for b in ("torch", "inductor", "triton", "njit")}
    assert names >= {f"attention/torch:{v}" for v in ("naive", "math", "flash", "efficient", "cudnn")}


@pytest.mark.slow
@pytest.mark.parametrize("number", ["fp32", *(pytest.param(n, marks=pytest.mark.whole) for n in ("bf16", "fp16"))])
def test_several_tiles_of_queries_and_keys_are_right_in_triton_and_numba(number):
    """Neither length is a multiple of a tile, and the second tile's diagonal crosses two tiles of keys."""
    text = f"batch=1,heads=2,queries=150,keys=141,dim=24,causal=1,dtype={number}"
    for record in assay.check("attention/triton", "attention/njit", workload=text, seconds=300):
        assert record.status == "pass", (record.kernel, record.reason)


def test_pytorchs_reasons_come_from_its_warnings():
    def refused():
        for text in (
            "Flash attention kernel not used because: (Triggered internally at sdp_utils.cpp:2.)",
            "Expected query, key and value to all be of dtype: {Half, BFloat16}. (Triggered internally at x.h:9.)",
            "CuDNN attention has been runtime disabled. (Triggered internally at sdp_utils.h:7.)",
        ):
            warnings.warn(text, stacklevel=1)
        raise RuntimeError("No available kernel. Aborting execution.")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Unsupported) as caught:
            backend("torch").invoke(refused, (), {})
    assert caught.value.what == "Expected query, key and value to all be of dtype: {Half, BFloat16}."


def test_another_runtime_error_stays_what_it_is():
    def fails():
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        backend("torch").invoke(fails, (), {})


# The preset


@pytest.mark.slow
def test_kernels_are_checked_on_the_shortest_sequence_and_timed_on_all():
    kernels = ("attention/torch:naive", "attention/torch:flash", "attention/torch:cudnn")
    wanted = Options(kernels, lengths=(48, 32), heads=2, dim=16, causal=(True,), dtypes=("fp32",), budget=0.1)
    study = list(attention(wanted))
    checked = [r for r in study if r.verb == "check"]
    timed = [r for r in study if r.verb == "bench"]
    assert {r.point["keys"] for r in checked} == {"32"} and len(checked) == 3
    assert [r.point["keys"] for r in timed] == ["32"] * 4 + ["48"] * 4  # the baseline besides
    assert len({r.run for r in study}) == 1
    for record in study:
        assert record.replay.startswith(f"assay {record.verb} attention/torch") or record.status == "skipped"
    by = {(r.variant, r.point["keys"]): r for r in timed}
    assert by["naive", "48"].status == "pass" and by["naive", "48"].evidence["baseline"] == "attention/torch"
    if by["naive", "48"].evidence["device"] == "cpu":
        assert "peak_bytes" not in by["flash", "48"].evidence
        refused = [r for r in study if r.variant == "cudnn"]  # checked and timed, and PyTorch has none for a CPU
        assert len(refused) == 3 and {r.status for r in refused} == {"skipped"}
        assert all("scaled_dot_product_attention" in r.reason for r in refused)


def timed(kernel, length, **evidence):
    """A record as bench makes it, with what tables and charts need."""
    evidence = {
        "threads": 1,
        "hot": {"median": 1e-3},
        "call": {"median": 1e-3},
        "gbps": 1.0,
        "tflops": 0.5,
        "compile_seconds": 0.0,
        "baseline": "attention/torch",
        "speedup": {"median": 2.0},
        **evidence,
    }
    text = f"batch=1,heads=2,queries={length},keys={length},dim=16,causal=1,dtype=fp32"
    return Record("bench", kernel, text, Status.PASS, "", "run", evidence, median=1e-3, interval=(9e-4, 2e-3))


def test_the_chart_has_a_panel_for_memory_only_where_it_was_measured():
    kernels = ("attention/torch", "attention/torch:flash", "attention/triton", "attention/cuda:mine")
    plain = [timed(k, n) for k in kernels for n in (32, 64)]
    drawn = chart.points(plain)
    assert {(p["arm"], p["seq"]) for p in drawn} == {
        (a, n) for a in ("torch", "flash", "triton", "cuda:mine") for n in (32, 64)
    }
    assert {p["mask"] for p in drawn} == {"causal"} and drawn[0]["Speedup"] == "2.00× over torch"
    assert [len(line["hconcat"]) for line in chart.draw(plain).to_dict()["vconcat"]] == [1]
    weighed = [timed(k, n, peak_bytes=4096) for k in kernels for n in (32, 64)]
    assert [len(line["hconcat"]) for line in chart.draw(weighed).to_dict()["vconcat"]] == [2]


def test_the_chart_leaves_out_what_has_no_one_length():
    oblong = replace(timed("attention/torch", 32), workload="batch=1,heads=2,queries=1,keys=32,dim=16,dtype=fp32")
    other = replace(timed("attention/torch", 32), workload="tokens=7,dtype=fp32")  # a user's op of the same name
    assert chart.points([oblong, other]) == [] and chart.draw([oblong, other]) is None


def test_memory_is_shown_only_where_it_was_measured():
    for evidence, shown in (({}, False), ({"peak_bytes": 2_500_000}, True)):
        record = timed("attention/torch", 32, **evidence)
        terminal = Console(width=140, record=True, file=io.StringIO())
        table.show([record], terminal)
        text = terminal.export_text()
        assert ("memory" in text) == shown and ("2.50" in text) == shown
        assert flat(record)["peak_bytes"] == (2_500_000 if shown else None)


def test_the_studys_own_records_of_an_h200_still_load_and_are_drawn():
    drawn = chart.points(read(OLD))
    assert {p["arm"] for p in drawn} == {"naive", "compiled", "math", "flash", "efficient", "cudnn"}
    assert {p["seq"] for p in drawn} == {512 << i for i in range(6)} and all(p["peak"] > 0 for p in drawn)
    assert len(chart.draw(read(OLD)).to_dict()["vconcat"]) == 2


def test_the_sweep_is_that_of_the_device_unless_lengths_are_named():
    cells = plan(Options(("attention/njit",), causal=(False, True))).cells
    on_gpu = backend("torch").availability().device == "cuda"
    assert len(cells) == 2 * (6 if on_gpu else 5)
    assert {str(c.workload.dtype) for c in cells} == {"bf16" if on_gpu else "fp32"}
    assert all(c.workload.sizes.queries == c.workload.sizes.keys for c in cells)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kernels": ("attention/fast",)}, "attention/fast"),
        ({"dtypes": ("fp64",)}, "fp64"),
        ({"lengths": (0,)}, "queries=0"),
        ({"dim": 257}, "dim=257"),
    ],
)
def test_wrong_use_is_said_before_anything_runs(options, says):
    with pytest.raises(UsageError, match=says) as caught:
        plan(Options(**options))
    assert caught.value.fix


@pytest.mark.parametrize("study", [("attention", "no/kernel"), ("compile", "no-model"), ("infer", "no-model")])
def test_a_chart_that_cannot_be_written_is_said_before_anything_is_planned(study):
    from assay.cli.model import app

    done = CliRunner().invoke(app, [*study, "--png", "a.pdf"])
    assert isinstance(done.exception, UsageError) and "a.png" in done.exception.fix


def test_the_mask_is_yes_no_or_both():
    from assay.cli.model import app

    done = CliRunner().invoke(app, ["attention", "--causal", "maybe"])
    assert isinstance(done.exception, UsageError) and "--causal both" in done.exception.fix


# On a GPU


@pytest.mark.gpu
def test_the_naive_form_holds_its_scores_in_memory_and_fused_ones_do_not():
    kernels = ("attention/torch:naive", "attention/torch:flash", "attention/triton")
    wanted = Options(kernels, lengths=(2048,), heads=16, dim=128, causal=(False,), dtypes=("bf16",), budget=1.0)
    timed = {r.kernel: r for r in attention(wanted) if r.verb == "bench"}
    scores = 16 * 2048 * 2048 * 2
    for record in timed.values():
        assert record.status == "pass", record.reason
    assert timed["attention/torch:naive"].evidence["peak_bytes"] >= 2 * scores
    assert timed["attention/torch:flash"].evidence["peak_bytes"] < scores / 2
    assert timed["attention/triton"].evidence["peak_bytes"] < 1 << 20  # its output is given to it
    assert timed["attention/torch:flash"].median < timed["attention/torch:naive"].median


@pytest.mark.gpu
def test_a_fused_kernel_says_for_which_formats_it_is():
    (record,) = assay.check("attention/torch:flash", workload="batch=1,heads=2,queries=64,keys=64,dim=64,dtype=fp32")
    assert record.status == "skipped" and "dtype" in record.reason


@pytest.mark.gpu
@pytest.mark.parametrize("number", ["fp32", "bf16", "fp16"])
def test_our_kernel_is_right_on_the_device(number):
    (record,) = assay.check("attention/triton", dtypes=number, seconds=120)
    assert record.status == "pass", record.reason
