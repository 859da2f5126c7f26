"""Kernels inside a model, beside the same kernels alone: the same function, every gain and loss accounted for."""

import io
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import host
from assay.bench.statistics import Estimate
from assay.cli.model import infer as command
from assay.cli.model.study import draw
from assay.models.studies.infer import Effort, Options, infer, plan, run
from assay.models.studies.infer.variants import variants
from assay.record import document, read
from assay.report.charts import Figure
from assay.report.charts import infer as chart
from assay.report.infer_tables import change, gain
from assay.report.infer_tables import read as timed
from assay.report.page import figures_of
from assay.report.table import Cell
from inference import QUICK, by, here, quick, users_folder  # noqa: F401

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def study(users):
    """A real one: processes of their own, bench itself, an interpreter, and a kernel that kills its process."""
    if host.runs_on_gpu():
        pytest.skip("beside a GPU nothing is interpreted, and bench times PyTorch there: the GPU's tests are below")
    options = Options(
        batches=(8,),
        device="cpu",
        arms=("eager", "graphed"),
        variants=("torch", "njit", "triton", "cuda"),
        swap={"gelu": str(users / "deadly.py")},
        alone=(8,),
        effort=QUICK,
    )
    planned = plan(f"{users / 'model.py'}:single", replace(options, swap={}))
    own = variants((), "cpu", ("swap",), options.swap)
    assert [v.name for v in own] == ["swap"]
    # The killer is not timed alone: bench has its own tests for that.
    planned = replace(planned, options=options, variants=(*planned.variants, *own))
    return list(run(planned))


# The real study


@pytest.mark.slow
def test_a_kernel_is_timed_alone_and_in_the_model_and_both_stand_in_one_record(study):
    record = by(study, variant="njit", arm="eager")
    assert record.status == "pass", record.reason
    assert record.verb == "model" and record.workload == "infer,variant=njit,arm=eager,batch=8,dtype=fp32,device=cpu"
    assert record.replay.endswith("--variant njit --arm eager --batch 8 --dtype fp32 --device cpu")
    (site,) = record.evidence["sites"]
    assert site["site"] == "1" and site["kernel"] == "gelu/njit" and site["workloads"] == {"n=256,dtype=fp32": 1}
    for side in ("torch", "kernel"):
        assert site["alone"][side]["cold"] > 0 and site["alone"][side]["hot"] > 0 and site["in_model"][side] > 0
    assert 0 < site["share"] < 1
    told = record.evidence
    assert told["model_bytes"]["variant"] == 4 * (32 * 32 + 32)
    assert told["peak_bytes"]["variant"] > told["model_bytes"]["variant"]
    assert told["boundary"]["gelu/njit"]["site"] > 0


@pytest.mark.slow
def test_the_gain_promised_and_the_gain_seen_follow_from_the_times(study):
    told = by(study, variant="njit", arm="eager").evidence
    (site,) = told["sites"]
    latency = told["latency"]["torch"]["median"]
    for kind in ("cold", "hot"):
        saved = site["alone"]["torch"][kind] - site["alone"]["kernel"][kind]
        assert told["predicted"][kind]["saving"] == pytest.approx(saved)
        assert told["predicted"][kind]["speedup"] == pytest.approx(latency / (latency - saved))
    inside = site["in_model"]["torch"] - site["in_model"]["kernel"]
    if not site.get("exceeds"):  # on a host that was busy during the profile
        assert told["predicted"]["in_model"]["saving"] == pytest.approx(inside)
    low, high = told["speedup"]["interval"]
    assert low <= told["speedup"]["median"] <= high
    assert len(told["torch_samples"]) == len(by(study, variant="njit", arm="eager").samples) == QUICK.rounds


@pytest.mark.slow
def test_an_interpreter_says_right_or_wrong_and_gives_no_time(study):
    record = by(study, variant="triton")
    assert record.status == "pass" and record.median is None and "says nothing about its time" in record.reason
    assert record.evidence["batch"] == 1 and record.evidence["mode"] == "triton-interpret"


@pytest.mark.slow
def test_a_variant_that_cannot_run_here_is_skipped_with_the_reason(study):
    record = by(study, variant="cuda")
    assert record.status == "skipped" and "no GPU here" in record.reason


@pytest.mark.slow
def test_graphs_are_not_of_a_cpu(study):
    assert {r.reason for r in study if r.evidence.get("arm") == "graphed"} == {"CUDA graphs are of a GPU"}


@pytest.mark.slow
def test_a_kernel_that_kills_its_process_is_one_failed_record_and_the_rest_goes_on(study):
    record = by(study, variant="swap")
    assert record.status == "fail" and "SIGSEGV" in record.reason
    assert {r.evidence["variant"] for r in study if r.status == "pass"} == {"torch", "njit", "triton"}


@pytest.mark.slow
def test_no_process_is_left_behind(study):
    assert not [
        p for p in psutil.Process().children(recursive=True) if "assay.models.studies.infer.child" in p.cmdline()
    ]


@pytest.mark.slow
def test_the_records_are_a_document_that_can_be_read_again(study, tmp_path):
    file = tmp_path / "infer.json"
    file.write_text(json.dumps(document(study, verb="model"), default=str))
    assert [r.workload for r in read(file)] == [r.workload for r in study]


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "said"), [(1.0, False), (0.5, True), (2.0, True)])
def test_where_torch_took_another_time_beside_a_variant_than_by_itself_it_is_said(study, factor, said):
    """Two processes, and a host that was slower in one: their latencies then contradict the gain."""
    from rich.console import Console

    own = {r.evidence["arm"]: r.median for r in study if r.median and r.evidence["variant"] == "torch"}
    for record in (r for r in study if r.median and r.evidence["rules"]):
        took = factor * own[record.evidence["arm"]]
        beside = {"torch": {"median": took, "interval": [took, took]}}
        told = replace(record, evidence=record.evidence | {"latency": record.evidence["latency"] | beside})
        terminal = Console(file=io.StringIO(), width=200)
        command.show([r for r in study if r.evidence["variant"] == "torch"] + [told], terminal)
        assert ("the host was not steady: torch" in " ".join(terminal.file.getvalue().split())) == said


@pytest.mark.slow
def test_tables_fit_120_columns_and_show_a_loss_as_plainly_as_a_gain(study):
    from rich.console import Console

    terminal = Console(file=io.StringIO(), width=120, highlight=False)
    command.show(study, terminal)
    text = terminal.file.getvalue()
    assert max(map(len, text.splitlines())) <= 120
    for word in ("njit", "gelu/njit", "n=256", "alone, cold", "in the model", "left as they are: linear ×1"):
        assert word in text
    assert "– cuda" in text
    assert gain(Estimate(0.5, (0.4, 0.6))) == Cell("[red]0.500×[/]", "**0.500× (0.400–0.600)**")
    assert gain(Estimate(1.5, (1.4, 1.6))).terminal == "[green]1.500×[/]"
    assert gain(Estimate(1.1, (0.9, 1.3))) == Cell("~1.100×", "1.10× (0.900–1.300)")
    assert change(12.3e-6, 8.1e-6).terminal == "12.3 → [green]8.10[/] µs"
    assert change(0.9e-6, 1.23e-3).terminal == "0.000900 → [red]1.23[/] ms"


@pytest.mark.slow
def test_the_chart_is_a_page_that_needs_nothing_else(study, tmp_path):
    pytest.importorskip("vl_convert")
    page, picture = draw("models", study, tmp_path / "infer.html", tmp_path / "infer.svg")
    text = page.read_text()
    assert "vega" in text and "https://cdn" not in text
    assert "in the model" in text and "by layer" in text and " is " in text  # every table of the terminal is there
    assert "njit" in picture.read_text() and "the whole pass" in picture.read_text()
    record = by(study, variant="njit", arm="eager")
    found = list(chart.savings(timed([record]), "case"))
    ways = 2 if record.evidence["sites"][0].get("exceeds") else 3  # on a host that was busy during the profile
    assert [r["site"] for r in found] == ["1"] * ways + [chart.ALL] * ways + ["the pass, eager"]
    assert found[-1]["saved"] == by(study, variant="njit", arm="eager").evidence["saving"]["median"]
    assert "eager, gain" in picture.read_text()
    assert Figure("infer", "", "", chart.draw).spec(()) is None
    figures, shared = figures_of(study)  # as the report takes them
    assert [f["name"] for f in figures] == ["models"] and all(isinstance(rows, list) for rows in shared.values())


steps = st.lists(
    st.sampled_from(["bert", "layer", "*", "attention", "output", "dense", "LayerNorm"]), min_size=1, max_size=7
)


@given(st.lists(steps.map(".".join), min_size=1, max_size=8, unique=True), st.booleans())
def test_a_site_is_called_by_as_much_of_its_end_as_tells_it_from_the_others(sites, fused):
    sites += [f"{sites[0]} + {sites[-1]}"] if fused else []
    found = chart.labels(sites)
    assert list(found) == sites and len(set(found.values())) == len(sites)
    for site, label in found.items():
        assert len(label) <= len(site)
        for path, end in zip(site.split(" + "), label.split(" + "), strict=True):
            assert path == end or path.endswith("." + end.removeprefix("…"))


# The page


def test_the_page_of_results_is_what_the_records_give():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "model_tables.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_page_has_a_table_for_every_batch_that_was_timed_alone(study, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import model_tables

    folder = tmp_path / "results" / "here" / "models"
    folder.mkdir(parents=True)
    (folder / "single.json").write_text(json.dumps(document(study), default=str))
    text = model_tables.render(tmp_path / "results")
    assert "model.py:single, fp32, batch 8" in text and "| njit | 1 | gelu/njit | n=256,dtype=fp32 | 1 |" in text
    assert "njit†" not in text
    changed = [replace(r, source={**r.source, "kernels": dict.fromkeys(r.source["kernels"], "0")}) for r in study]
    (folder / "single.json").write_text(json.dumps(document(changed), default=str))
    assert "| njit† |" in model_tables.render(tmp_path / "results")


# On a GPU


@pytest.mark.gpu
@pytest.mark.slow
def test_on_a_gpu_every_kernels_time_is_found_and_graphs_keep_the_device_busier():
    options = Options(
        batches=(1, 64),
        variants=("torch", "triton", "cuda"),
        alone=(64,),
        effort=Effort(rounds=6, passes=3),
        backend="aot_eager",
        score=False,
    )
    records = list(infer("mnist-cnn", options))
    assert {str(r.status) for r in records} == {"pass"}, [r.reason for r in records]
    for name in ("triton", "cuda"):
        told = by(records, variant=name, arm="eager", batch=64).evidence
        for whose in ("torch", "variant"):
            profile = told["profile"][whose]
            parts = sum(layer[whose] or 0.0 for layer in told["layers"])
            assert math.isclose(parts + profile["unattributed"], profile["total"], rel_tol=1e-6)
            assert profile["unattributed"] < 0.05 * profile["total"]
        for row in told["sites"]:
            assert row["in_model"]["torch"] > 0 and row["in_model"]["kernel"] > 0 and row["alone"]["kernel"]["cold"] > 0
        graphed = by(records, variant=name, arm="graphed", batch=1).evidence
        eager = by(records, variant=name, arm="eager", batch=1).evidence
        assert 0 < eager["busy"]["variant"] < graphed["busy"]["variant"] <= 1.05
        assert told["peak_bytes"]["variant"] > told["model_bytes"]["variant"]


@pytest.mark.gpu
def test_on_a_gpu_a_forward_that_waits_for_the_host_is_not_captured():
    from assay.models.studies.infer.pairing import NotCapturable, captured

    x = torch.randn(8, device="cuda")
    assert captured(lambda: x * 2).bytes > 0
    with pytest.raises(NotCapturable, match="cannot be captured"):
        captured(lambda: x * x.sum().item())
