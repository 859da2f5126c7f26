"""Attention, naive against fused: errors that tell right from wrong, honest memory, refusals in PyTorch's own words."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.cli.model import attention as command
from assay.errors import UsageError
from assay.models.attention import Options, arms, attention, child, plan, verb
from assay.models.attention.cell import Cell
from assay.models.attention.truth import controls, judge, truth
from assay.models.clock import WaitedClock
from assay.models.turns import NEEDED, Arm, in_turn
from assay.record import document, read
from assay.worker.stopwatch import HostClock

SEQ = 256
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def study():
    """A real one, in processes of its own: everything but the compiled arm, which has a test to itself."""
    wanted = ("naive", "math", "flash", "efficient", "cudnn")
    options = Options(
        lengths=(SEQ, 64), device="cpu", causal=(False, True), arms=wanted, rounds=NEEDED, budget=30, threads=1
    )
    return list(attention(options))


def drawn(cell):
    torch.manual_seed(cell.seq)
    shape = (cell.batch, cell.heads, cell.seq, cell.dim)
    number = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[cell.dtype]
    return tuple(torch.randn(shape).to(number) for _ in range(3))


@pytest.fixture
def here(in_this_process):
    in_this_process(child, verb, end=torch._dynamo.reset)


def by_arm(records, seq, causal=0):
    place = f"seq={seq},dim=64,causal={causal},"
    return {r.evidence["arm"]: r for r in records if place in r.workload}


# The real study


def test_there_is_a_record_for_every_arm_length_and_mask_short_ones_first(study):
    assert len(study) == 5 * 2 * 2
    assert [r.workload.split(",")[2] for r in study[:10]] == ["seq=64"] * 5 + [f"seq={SEQ}"] * 5
    assert {r.verb for r in study} == {"model"} and all(r.replay.startswith("assay model attention") for r in study)
    assert {r.kernel for r in study} < set(arms.ARMS.values())


def test_what_runs_is_right_timed_and_was_really_the_backend_asked_for(study):
    operators = {"math": "_attention_math", "flash": "_flash_attention"}
    for record in (r for r in study if r.evidence["arm"] in ("naive", "math", "flash")):
        assert record.status == "pass", record.reason
        assert record.median > 0 and len(record.samples) >= NEEDED
        assert record.evidence["controls_rejected"] == {"zeros": True, "another row": True, "window": True}
        wanted = operators.get(record.evidence["arm"], "")
        assert not wanted or any(wanted in name for name in record.evidence["ran"])


def test_an_arm_that_is_not_for_this_device_is_skipped_with_the_librarys_reason(study):
    for record in (r for r in study if r.evidence["arm"] in ("efficient", "cudnn")):
        assert record.status == "skipped" and "scaled_dot_product_attention" in record.reason
        assert record.median is None


def test_the_naive_form_holds_its_scores_in_memory_and_the_fused_one_does_not(study):
    for causal in (0, 1):
        found = by_arm(study, SEQ, causal)
        scores = found["naive"].evidence["scores_bytes"]
        assert scores == 8 * SEQ * SEQ * 4
        assert 2 * scores <= found["naive"].evidence["peak_bytes"] < 6 * scores  # scores, probabilities, little else
        assert found["flash"].evidence["peak_bytes"] < scores / 2
        assert "VmHWM" in found["naive"].evidence["memory"]


def test_operations_and_bytes_are_those_of_the_shape(study):
    plain, causal = (by_arm(study, SEQ, c)["flash"] for c in (0, 1))
    assert plain.evidence["operations"] == 4 * 8 * SEQ * SEQ * 64 == 2 * causal.evidence["operations"]
    assert plain.evidence["bytes"] == 4 * 8 * SEQ * 64 * 4
    assert plain.evidence["tflops"] * 1e12 == pytest.approx(plain.evidence["operations"] / plain.median)


def test_speedups_are_against_naive_round_by_round(study):
    found = by_arm(study, SEQ)
    assert "speedup" not in found["naive"].evidence
    low, high = found["flash"].evidence["speedup"]["interval"]
    assert 0 < low <= found["flash"].evidence["speedup"]["median"] <= high


def test_records_survive_a_file(study, tmp_path):
    file = tmp_path / "records.json"
    file.write_text(json.dumps(document(study), allow_nan=False))
    assert [r.workload for r in read(file)] == [r.workload for r in study]


def test_the_chart_shows_time_and_memory_of_every_arm(study):
    from assay.report.charts.attention import draw, points

    rows = points(study)
    assert {(r["arm"], r["mask"]) for r in rows} == {
        (a, m) for a in ("naive", "math", "flash") for m in ("every key seen", "causal")
    }
    assert all(r["seconds"] > 0 and r["peak"] > 0 for r in rows)
    spec = draw(study).to_dict()  # Altair validates it
    assert len(spec["vconcat"]) == 2 and all(len(line["hconcat"]) == 2 for line in spec["vconcat"])


def test_tables_fit_eighty_columns_and_say_once_what_was_left_out(study):
    import io

    from rich.console import Console

    terminal = Console(width=80, record=True, file=io.StringIO())
    command.show(study, terminal)
    text = terminal.export_text()
    assert "…" not in text and "causal" in text
    assert text.count(f"– efficient at 64, {SEQ}") == 2  # once for each mask


def test_the_compiled_arm_is_compiled_and_says_if_inductor_knew_the_naive_form(here, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    wanted = Options(
        lengths=(64,), heads=2, device="cpu", causal=(False,), arms=("naive", "compiled"), rounds=NEEDED, budget=30
    )
    _, compiled = attention(wanted)
    assert compiled.status == "pass", compiled.reason
    assert compiled.evidence["recognised"] in (0, 1) and compiled.evidence["first_seconds"] > compiled.median
    # If it was replaced by PyTorch's fused form, that is what ran.
    assert bool(compiled.evidence["recognised"]) == any("flash" in name for name in compiled.evidence["ran"])


def test_the_command_prints_one_document_and_writes_it_to_a_file(assay, tmp_path):
    done = assay(
        "model",
        "attention",
        "--seq",
        "32",
        "--heads",
        "2",
        "--arm",
        "naive,flash,cudnn",
        "--causal",
        "no",
        "--device",
        "cpu",
        "--rounds",
        "6",
        "--json",
        "--out",
        "a.json",
        cwd=tmp_path,
        env={"ASSAY_STORE": "none"},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["study"] == "attention" and [r["status"] for r in told["records"]] == ["pass", "pass", "skipped"]
    assert json.loads((tmp_path / "a.json").read_text())["run"] == told["run"]


def test_an_arm_that_the_budget_cannot_pay_is_skipped_and_says_so(here):
    (record,) = attention(Options(lengths=(64,), heads=1, device="cpu", causal=(False,), arms=("naive",), budget=1e-7))
    assert record.status == "skipped" and "--budget" in record.reason
    assert record.evidence["errors"]["share"] < 1  # judged all the same


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"arms": ("fast",)}, "no arm called 'fast'"),
        ({"dtypes": ("fp64",)}, "fp64"),
        ({"lengths": (0,)}, "at least 1"),
        ({"device": "tpu"}, "no device called 'tpu'"),
    ],
)
def test_wrong_use_is_said_at_once(settings, says):
    with pytest.raises(UsageError, match=says) as caught:
        plan(Options(**({"device": "cpu"} | settings)))
    assert caught.value.fix


@pytest.mark.parametrize("study", [("attention", "--arm", "none"), ("compile", "no-model"), ("infer", "no-model")])
def test_a_chart_that_cannot_be_written_is_said_before_anything_is_planned(study):
    from typer.testing import CliRunner

    from assay.cli.model import app

    done = CliRunner().invoke(app, [*study, "--png", "a.pdf"])
    assert isinstance(done.exception, UsageError) and "a.png" in done.exception.fix


# Errors


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(1, 40),
    st.sampled_from([1, 8, 33]),
    st.booleans(),
)
def test_the_truth_is_float64_attention(batch, heads, seq, dim, causal):
    cell = Cell(batch, heads, seq, dim, causal, "fp32", "cpu")
    inputs = drawn(cell)
    known = torch.nn.functional.scaled_dot_product_attention(*(t.double() for t in inputs), is_causal=causal)
    assert torch.allclose(truth(inputs, cell).exact, known, rtol=1e-12, atol=1e-13)


def test_long_sequences_are_judged_on_rows_that_include_the_first_and_the_last():
    cell = Cell(1, 1, 3000, 4, True, "fp32", "cpu")
    found = truth(drawn(cell), cell)
    assert found.rows[0] == 0 and found.rows[-1] == 2999 and len(found.rows) == 512


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seq", [8, 100, 400])
def test_zeros_a_window_and_another_row_are_wrong_and_naive_is_right(dtype, causal, seq):
    cell = Cell(1, 2, seq, 64, causal, dtype, "cpu")
    inputs = drawn(cell)
    known = truth(inputs, cell)
    plain = known.errors(arms.naive(*inputs, causal))
    assert judge(plain, cell, None)["share"] < 0.5
    for against in (None, plain):
        assert controls(known, inputs, cell, against) == {"zeros": True, "another row": True, "window": True}


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_one_key_lost_in_a_thousand_a_wrong_scale_and_a_nan_are_seen(dtype):
    cell = Cell(1, 1, 1024, 8, False, dtype, "cpu")
    q, k, v = inputs = drawn(cell)
    known = truth(inputs, cell)
    right = arms.naive(q, k, v, False)
    plain = known.errors(right)
    blemished = right.clone()
    blemished[0, 0, 0, 3] = math.nan
    wrong = {
        "a key lost": arms.naive(q, k[..., :-1, :], v[..., :-1, :], False),
        "another scale": arms.naive(q * 1.05, k, v, False),
        "a NaN": blemished,
    }
    for name, out in wrong.items():
        assert judge(known.errors(out), cell, plain)["share"] > 1, name


# Arms and turns


def test_pytorchs_reasons_are_those_of_the_backend_that_was_asked_for():
    warned = [
        "Memory efficient kernel not used because: (Triggered internally at sdp_utils.cpp:1.)",
        "Memory Efficient attention has been runtime disabled. (Triggered internally at sdp_utils.h:5.)",
        "Flash attention kernel not used because: (Triggered internally at sdp_utils.cpp:2.)",
        "Expected query, key and value to all be of dtype: {Half, BFloat16}. (Triggered internally at x.h:9.)",
        "CuDNN attention kernel not used because: (Triggered internally at sdp_utils.cpp:3.)",
        "CuDNN attention has been runtime disabled. (Triggered internally at sdp_utils.h:7.)",
    ]
    assert arms.why_not("flash", warned) == ["Expected query, key and value to all be of dtype: {Half, BFloat16}."]
    assert arms.why_not("efficient", warned) == ["Memory Efficient attention has been runtime disabled."]


def test_another_backend_than_the_one_asked_for_is_an_error():
    inputs = drawn(Cell(1, 1, 16, 8, False, "fp32", "cpu"))
    pretender = arms.Way("cudnn", arms.naive)
    with pytest.raises(Exception, match="cudnn was asked for"):
        arms.operators(pretender, inputs, False)


def test_every_arm_is_first_equally_often():
    seen = []
    turns = in_turn([Arm(n, lambda n=n: seen.append(n)) for n in "abc"], HostClock(), rounds=9, budget=60, samples=1)
    assert {len(rounds) for rounds in turns.samples.values()} == {9}
    order = [n for i, n in enumerate(seen) if not i or seen[i - 1] != n][3:]  # the first three are guesses
    assert order[:6] == ["a", "b", "c", "b", "c", "a"]


@pytest.mark.parametrize(("each", "order"), [(False, "w012w"), (True, "w0w1w2w")])
def test_the_device_is_waited_for_once_or_after_each_call(monkeypatch, each, order):
    seen = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: seen.append("w"))
    clock = WaitedClock(each)
    clock.sample(lambda i: seen.append(str(i)), 0, 3)
    assert "".join(seen) == order and ("every call" in clock.method) == each


@pytest.mark.gpu
def test_on_a_gpu_backends_run_or_say_why_not_and_memory_is_the_allocators():
    wanted = Options(
        lengths=(2048,),
        heads=16,
        dim=128,
        causal=(False, True),
        dtypes=("bf16", "fp32"),
        device="cuda",
        rounds=NEEDED,
        budget=1.0,
    )
    records = list(attention(wanted))
    for record in records:
        assert record.status in ("pass", "skipped"), f"{record.kernel} {record.workload}: {record.reason}"
    halves = {r.evidence["arm"]: r for r in records if "causal=0,dtype=bf16" in r.workload}
    assert halves["flash"].status == "pass" and halves["flash"].median < halves["naive"].median
    assert halves["flash"].evidence["peak_bytes"] < halves["naive"].evidence["scores_bytes"]
    assert halves["naive"].evidence["peak_bytes"] >= 2 * halves["naive"].evidence["scores_bytes"]
    whole = {r.evidence["arm"]: r for r in records if "causal=0,dtype=fp32" in r.workload}
    assert whole["flash"].status == "skipped" and "dtype" in whole["flash"].reason
