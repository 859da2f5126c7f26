"""Kernels inside a model, beside the same kernels alone: the same function, every gain and loss accounted for."""

import io
import itertools
import json
import math
import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.autograd import DeviceType

from assay import host
from assay.cli.model import infer as command
from assay.cli.model.infer_tables import change, gain, show
from assay.cli.model.study import draw
from assay.errors import UsageError
from assay.models.studies.infer import (
    Effort,
    Options,
    Trained,
    child,
    infer,
    plan,
    planning,
    process,
    profiled,
    run,
    suspect,
)
from assay.models.studies.infer.alone import Alone, Times
from assay.models.studies.infer.attribution import MODULE, Span, Work, attribute, outermost
from assay.models.studies.infer.calls import calls
from assay.models.studies.infer.case import Case
from assay.models.studies.infer.evidence import training
from assay.models.studies.infer.joined import alike, by_layer, predicted, rows
from assay.models.studies.infer.outputs import BY_CHANCE, ENOUGH
from assay.models.studies.infer.profiled import passes
from assay.models.studies.infer.site import Called
from assay.models.studies.infer.variants import Variant, variants
from assay.models.subject.registry import entry
from assay.models.swap import swap
from assay.record import Record, Status, document, read
from assay.report.charts import Figure
from assay.report.charts import infer as chart
from assay.report.page import figures_of
from assay.worker.failure import describe
from assay.worker.fresh import Refused

ROOT = Path(__file__).parents[1]
MINE = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Tiny(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm, self.act = nn.Linear(32, 32), nn.LayerNorm(32), nn.GELU()

        def forward(self, x):
            return self.act(self.linear(x)) + F.gelu(self.norm(x))

    class Broken(Tiny):
        def forward(self, x):
            y = self.act(self.linear(x))
            print("a graph ends here")
            return y.relu()

    class Raises(Tiny):
        def forward(self, x):
            return super().forward(x) if len(x) < 9 else self.missing

    def single(): return nn.Sequential(nn.Linear(32, 32), nn.GELU())
    def tiny(): return Tiny()
    def broken(): return Broken()
    def raises(): return Raises()
    def example(batch): return torch.randn(batch, 32)
"""
KERNELS = {
    "tanh": "torch.nn.functional.gelu(x, approximate='tanh')",  # another function, and nearly the same
    "deadly": "os.kill(os.getpid(), 11)",
    "right": "torch.nn.functional.gelu(x)",
}
QUICK = Effort(rounds=6, budget=0.1, passes=3, threads=1, alone_budget=0.1)


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A folder with the user's own model and kernels."""
    folder = tmp_path_factory.mktemp("mine")
    (folder / "model.py").write_text(textwrap.dedent(MINE))
    for name, body in KERNELS.items():
        text = (
            f"import os\nimport torch\nfrom assay import kernel\n\n@kernel('gelu', backend='torch', variant='{name}')\n"
        )
        (folder / f"{name}.py").write_text(f"{text}def gelu(x, *, out):\n    out.copy_({body})\n")
    return folder


@pytest.fixture(scope="module")
def study(mine):
    """A real one: processes of their own, bench itself, an interpreter, and a kernel that kills its process."""
    if host.runs_on_gpu():
        pytest.skip("beside a GPU nothing is interpreted, and bench times PyTorch there: the GPU's tests are below")
    options = Options(
        batches=(8,),
        device="cpu",
        arms=("eager", "graphed"),
        variants=("torch", "njit", "triton", "cuda"),
        swap={"gelu": str(mine / "deadly.py")},
        alone=(8,),
        effort=QUICK,
    )
    planned = plan(f"{mine / 'model.py'}:single", replace(options, swap={}))
    own = variants((), "cpu", ("swap",), options.swap)
    assert [v.name for v in own] == ["swap"]
    # The killer is not timed alone: bench has its own tests for that.
    planned = replace(planned, options=options, variants=(*planned.variants, *own))
    return list(run(planned))


@pytest.fixture
def here(in_this_process):
    in_this_process(child, planning, process, end=child._made.clear)
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=False, suppress_errors=False):
        yield
    torch._dynamo.reset()


def quick(model, **more):
    given = {"arms": ("eager",), "alone": (), "effort": QUICK, "device": "cpu"} | more
    return list(infer(str(model), Options(**given)))


def by(records, **wanted):
    found = [r for r in records if all(r.evidence.get(k) == v for k, v in wanted.items())]
    assert found, wanted
    return found[0]


# The real study


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


def test_the_gain_promised_and_the_gain_seen_follow_from_the_times(study):
    told = by(study, variant="njit", arm="eager").evidence
    (site,) = told["sites"]
    latency = told["latency"]["torch"]["median"]
    for kind in ("cold", "hot"):
        saved = site["alone"]["torch"][kind] - site["alone"]["kernel"][kind]
        assert told["predicted"][kind]["saving"] == pytest.approx(saved)
        assert told["predicted"][kind]["speedup"] == pytest.approx(latency / (latency - saved))
    inside = site["in_model"]["torch"] - site["in_model"]["kernel"]
    assert told["predicted"]["in_model"]["saving"] == pytest.approx(inside)
    low, high = told["speedup"]["interval"]
    assert low <= told["speedup"]["median"] <= high
    assert len(told["torch_samples"]) == len(by(study, variant="njit", arm="eager").samples) == QUICK.rounds


def test_an_interpreter_says_right_or_wrong_and_gives_no_time(study):
    record = by(study, variant="triton")
    assert record.status == "pass" and record.median is None and "times say nothing" in record.reason
    assert record.evidence["batch"] == 1 and record.evidence["mode"] == "triton-interpret"


def test_a_variant_that_cannot_run_here_is_skipped_with_the_reason(study):
    record = by(study, variant="cuda")
    assert record.status == "skipped" and "no GPU here" in record.reason


def test_graphs_are_not_of_a_cpu(study):
    assert {r.reason for r in study if r.evidence["arm"] == "graphed"} == {"CUDA graphs are of a GPU"}


def test_a_kernel_that_kills_its_process_is_one_failed_record_and_the_rest_goes_on(study):
    record = by(study, variant="swap")
    assert record.status == "fail" and "SIGSEGV" in record.reason
    assert {r.evidence["variant"] for r in study if r.status == "pass"} == {"torch", "njit", "triton"}


def test_no_process_is_left_behind(study):
    assert not [
        p for p in psutil.Process().children(recursive=True) if "assay.models.studies.infer.child" in p.cmdline()
    ]


def test_the_records_are_a_document_that_can_be_read_again(study, tmp_path):
    file = tmp_path / "infer.json"
    file.write_text(json.dumps(document(study, verb="model"), default=str))
    assert [r.workload for r in read(file)] == [r.workload for r in study]


@pytest.mark.parametrize(("factor", "said"), [(1.0, False), (0.5, True), (2.0, True)])
def test_where_torch_took_another_time_beside_a_variant_than_by_itself_it_is_said(study, factor, said):
    """Two processes, and a host that was slower in one: their latencies then contradict the gain."""
    from rich.console import Console

    own = {r.evidence["arm"]: r.median for r in study if r.median and r.evidence["variant"] == "torch"}
    for record in (r for r in study if r.median and r.evidence["rules"]):
        beside = {"torch": {"median": factor * own[record.evidence["arm"]]}}
        told = replace(record, evidence=record.evidence | {"latency": record.evidence["latency"] | beside})
        terminal = Console(file=io.StringIO(), width=200)
        show([r for r in study if r.evidence["variant"] == "torch"] + [told], terminal)
        assert ("the host was not steady" in terminal.file.getvalue()) == said


def test_tables_fit_120_columns_and_show_a_loss_as_plainly_as_a_gain(study):
    from rich.console import Console

    terminal = Console(file=io.StringIO(), width=120, highlight=False)
    show(study, terminal)
    text = terminal.file.getvalue()
    assert max(map(len, text.splitlines())) <= 120
    for word in ("njit", "gelu/njit", "n=256", "alone, cold", "in the model", "left as they are: linear ×1"):
        assert word in text
    assert "– cuda" in text
    assert gain({"median": 0.5, "interval": [0.4, 0.6]}) == "[red]0.500×[/]"
    assert gain({"median": 1.5, "interval": [1.4, 1.6]}) == "[green]1.500×[/]"
    assert gain({"median": 1.1, "interval": [0.9, 1.3]}) == "~1.100×"
    assert change(12.3e-6, 8.1e-6) == "12.3 → [green]8.10[/] µs"
    assert change(0.9e-6, 1.23e-3) == "0.000900 → [red]1.23[/] ms"


def test_the_chart_is_a_page_that_needs_nothing_else(study, tmp_path):
    pytest.importorskip("vl_convert")
    page, picture = draw("models", study, tmp_path / "infer.html", tmp_path / "infer.svg")
    assert "vega" in page.read_text() and "https://cdn" not in page.read_text()
    assert "njit" in picture.read_text() and "the whole pass" in picture.read_text()
    found = list(chart.savings([by(study, variant="njit", arm="eager")], "case"))
    assert [r["site"] for r in found] == ["1"] * 3 + [chart.ALL] * 3 + ["the pass, eager"]
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


# mnist-cnn, in this process


@pytest.mark.usefixtures("here")
def test_mnist_cnn_computes_the_same_function_through_every_variant():
    records = quick("mnist-cnn", batches=(16, 4), variants=("torch", "njit"))
    assert [(r.evidence["variant"], r.evidence["batch"]) for r in records] == [
        ("torch", 4),
        ("torch", 16),
        ("njit", 4),
        ("njit", 16),
    ]
    for record in records:
        assert record.status == "pass", record.reason
        told = record.evidence
        assert told["outputs"]["share"] <= 1 and told["outputs"]["elements"] >= ENOUGH
        assert told["weights"] == {"from": "seeded"} and told["throughput"] == told["batch"] / record.median
        assert "assay model train mnist-cnn" in told["training"]["why"]
        assert record.source["file"].endswith("mnist_cnn.py")
    njit = by(records, variant="njit", batch=16).evidence
    assert [s["site"] for s in njit["sites"]] == ["act1", "act2", "act3"]
    assert {s["op"]: s["state"] for s in njit["swap"]}["conv2d"] == "left"
    assert "not timed alone" in njit["predicted"]["why"] and "cold" not in njit["predicted"]


@pytest.mark.usefixtures("here")
def test_every_layer_has_its_time_and_nothing_is_lost():
    told = quick("mnist-cnn", batches=(4,), variants=("njit",))[0].evidence
    named = {"conv1", "act1", "conv2", "act2", "pool", "fc1", "act3", "fc2"}
    assert named <= {layer["path"] for layer in told["layers"]}
    for whose in ("torch", "variant"):
        profile = told["profile"][whose]
        parts = sum(layer.get(whose, 0.0) for layer in told["layers"])
        assert parts + profile["between"] == pytest.approx(profile["total"]) and profile["between"] >= 0
        assert profile["total"] <= profile["wall"]


@pytest.mark.usefixtures("here")
def test_a_fused_pair_is_one_site_held_against_both_of_its_modules():
    told = quick("mnist-cnn-ln", batches=(4,), variants=("njit+fused",))[0].evidence
    assert [s["site"] for s in told["sites"]] == [f"norm{n}.0 + norm{n}.1" for n in (1, 2, 3)]
    layers = {layer["path"]: layer for layer in told["layers"]}
    for site in told["sites"]:
        first, second = site["site"].split(" + ")
        assert site["in_model"]["torch"] == pytest.approx(layers[first]["torch"] + layers[second]["torch"])
        assert "variant" not in layers[first] and site["in_model"]["kernel"] > 0


@pytest.mark.usefixtures("here")
def test_a_functional_call_is_a_site_of_the_module_that_makes_it(mine):
    told = quick(f"{mine / 'model.py'}:tiny", batches=(8,), variants=("njit",))[0].evidence
    assert [(s["site"], s["form"]) for s in told["sites"]] == [
        ("act", "module"),
        ("norm", "module"),
        ("(the model)", "function"),
    ]
    functional = told["sites"][-1]
    assert functional["in_model"]["torch"] > 0 and functional["in_model"]["kernel"] > 0


@pytest.mark.usefixtures("here")
def test_a_wrong_kernel_is_a_failure_that_names_the_module(mine):
    records = quick(f"{mine / 'model.py'}:tiny", batches=(1, 8), swap={"gelu": str(mine / "tanh.py")})
    assert [r.evidence["variant"] for r in records] == ["torch", "torch", "swap", "swap"]
    for record in records[2:]:
        assert record.status == "fail" and "the outputs are wrong" in record.reason
        assert record.reason.endswith("the first module that is off: act")
        assert record.evidence["outputs"]["share"] > 1 and "--swap gelu=" in record.replay


@pytest.mark.usefixtures("here")
def test_looking_for_the_wrong_module_keeps_rows_of_every_output_not_all_of_it():
    wide = torch.arange(4096.0 * 1024).reshape(4096, 1024)
    kept = suspect._some(wide)
    assert kept.shape[1] == 1024 and kept.numel() <= suspect._MOST and kept[-1, 0] > 0.9 * wide[-1, 0]
    assert torch.equal(suspect._some(wide[:64]), wide[:64])


@pytest.mark.usefixtures("here")
def test_packed_weights_are_told_by_their_bytes_and_their_noise_and_are_not_called_wrong(mine):
    rules = {"linear": "mx_linear", "gelu": "gelu"}
    record = by(quick(f"{mine / 'model.py'}:tiny", batches=(8,), swap=rules, alone=(8,)), variant="swap")
    assert record.status == "pass", record.reason
    told = record.evidence
    assert "packed by design" in record.reason and told["packed"]["weights"]["saved"] == pytest.approx(0.742, abs=0.005)
    assert told["model_bytes"]["variant"] < told["model_bytes"]["torch"]
    assert 30 < told["outputs"]["compared"]["sqnr"] < 60
    assert {s["op"]: s["kernel"] for s in told["sites"]} == {"linear": "mx_linear/njit", "gelu": "gelu/njit"}
    assert all(s["in_model"]["kernel"] > 0 for s in told["sites"])
    # A rule that names an op means its best kernel; a packed layer is held against the plain one.
    assert all(s["alone"][side]["cold"] > 0 for s in told["sites"] for side in ("torch", "kernel"))
    assert "cold" in told["predicted"] and all("gradient" in c for c in told["boundary"].values())
    assert set(told["boundary"]) == {"mx_linear/njit", "gelu/njit"}


@pytest.mark.usefixtures("here")
def test_a_right_kernel_of_the_users_passes_at_one_element(mine):
    records = quick(f"{mine / 'model.py'}:tiny", batches=(1,), swap={"act": str(mine / "right.py")})
    record = by(records, variant="swap")
    assert record.status == "pass", record.reason
    assert record.evidence["outputs"]["elements"] == ENOUGH  # one alone would be judged by chance
    assert [s["site"] for s in record.evidence["sites"]] == ["act"]


@pytest.mark.usefixtures("here")
def test_a_rule_that_matches_nothing_is_wrong_use_and_names_what_comes_close(monkeypatch, capsys):
    from assay.cli.main import main

    monkeypatch.setattr(sys, "argv", ["assay", "model", "infer", "mnist-cnn", "--swap", "conv3=conv2d/torch"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "rule 'conv3' matches nothing" in told and "did you mean conv2 or conv1" in told


@pytest.mark.usefixtures("here")
def test_the_kernels_are_inside_the_compiled_graph_and_breaks_are_counted(mine):
    more = {"arms": ("eager", "compiled"), "backend": "aot_eager", "variants": ("njit",), "batches": (8,)}
    whole = by(quick(f"{mine / 'model.py'}:tiny", **more), arm="compiled")
    assert whole.status == "pass", whole.reason
    assert whole.evidence["compile"]["variant"]["graphs"] == 1 and whole.evidence["compile"]["variant"]["breaks"] == 0
    assert {s["traced"] for s in whole.evidence["swap"] if s["state"] == "replaced"} == {1}
    assert "sites" not in whole.evidence and "in_model" in whole.evidence["predicted"]
    parted = by(quick(f"{mine / 'model.py'}:broken", **more), arm="compiled")
    assert parted.evidence["compile"]["variant"]["breaks"] == 1 and "1 graph break" in parted.reason
    assert any("print" in reason for reason in parted.evidence["compile"]["variant"]["break_reasons"])


@pytest.mark.usefixtures("here")
def test_an_exception_in_the_users_model_names_its_line(mine):
    with pytest.raises(UsageError, match="has no attribute 'missing'") as told:
        quick(f"{mine / 'model.py'}:raises", batches=(8, 16))
    assert str(mine / "model.py") in told.value.where


@pytest.mark.usefixtures("here")
def test_a_batch_that_takes_too_long_is_left_out_and_says_so(mine):
    effort = replace(QUICK, budget=1e-9)
    (record,) = quick(f"{mine / 'model.py'}:single", batches=(8,), variants=("torch",), effort=effort)
    assert record.status == "skipped" and "more than --budget 1e-09" in record.reason


@pytest.mark.usefixtures("here")
def test_accuracy_is_measured_with_the_kernels_in_place(monkeypatch):
    from assay.models.subject.data import digits

    torch.manual_seed(0)
    few = digits.Digits("mnist", torch.randint(0, 255, (40, 1, 28, 28), dtype=torch.uint8), torch.arange(40) % 10, {})
    monkeypatch.setattr(digits, "load", lambda *about: few)
    records = quick("mnist-cnn", batches=(4,), variants=("torch", "njit"), score=True)
    torch_score, njit_score = (r.evidence["score"] for r in records)
    assert torch_score["total"] == 40 and torch_score["correct"] == njit_score["correct"]


@pytest.mark.usefixtures("here")
def test_weights_of_a_file_are_used_and_named(tmp_path):
    from safetensors.torch import save_file

    model = entry("mnist-cnn").build(7)
    save_file(model.state_dict(), tmp_path / "mine.safetensors")
    (record,) = quick("mnist-cnn", batches=(4,), variants=("torch",), weights=tmp_path / "mine.safetensors")
    told = record.evidence["weights"]
    assert told["from"] == "given" and told["file"] == "mine.safetensors" and len(told["sha256"]) == 64
    (tmp_path / "cut.safetensors").write_bytes(b"no weights")
    with pytest.raises(UsageError):
        quick("mnist-cnn", batches=(4,), weights=tmp_path / "cut.safetensors")
    with pytest.raises(UsageError, match="no file"):
        quick("mnist-cnn", weights=tmp_path / "gone.safetensors")


def test_a_request_that_makes_no_sense_is_refused_before_anything_runs():
    for wrong, words in (
        ({"arms": ("quick",)}, "no arm called 'quick'"),
        ({"batches": (0,)}, "at least one element"),
        ({"dtype": "fp64"}, "not run in fp64"),
        ({"variants": ("swap",)}, "what --swap names"),
        ({"alone": (3,)}, "that batch size is not run"),
        ({"swap": {"gelu": "gelu/trition"}}, "no kernel called"),
    ):
        with pytest.raises(UsageError, match=words):
            plan("mnist-cnn", Options(**{"batches": (4,), **wrong}))


# Variants


def test_variants_are_the_kernels_each_language_has_for_the_models_ops():
    found = {v.name: v for v in variants(["conv2d", "layernorm", "gelu", "layernorm+gelu"], "cuda", ("all",), {})}
    assert next(iter(found)) == "torch" and not found["torch"].rules
    assert found["triton"].rules == {"conv2d": "conv2d/triton", "layernorm": "layernorm/triton", "gelu": "gelu/triton"}
    assert found["cuda:inline_ptx"].rules == found["cuda"].rules | {"conv2d": "conv2d/cuda:inline_ptx"}
    assert found["triton+fused"].rules == found["triton"].rules | {"layernorm+gelu": "ln_gelu/triton"}
    assert "conv2d" not in found["cupy"].rules  # nobody wrote one: left as it is
    assert "inductor" not in found and found["njit"].cannot.endswith("runs on cpu, the model is on cuda")
    (asked,) = variants(["gelu"], "cpu", ("inductor",), {})
    assert asked.rules == {"gelu": "gelu/inductor"}
    with pytest.raises(UsageError, match="no variant called 'tritn'") as told:
        variants(["gelu"], "cpu", ("tritn",), {})
    assert "did you mean triton" in told.value.fix


# Attribution


@st.composite
def nested(draw, begin=0, end=240, depth=0):
    """Spans inside each other, as a call stack leaves them."""
    found = []
    for _ in range(draw(st.integers(0, 3 if depth < 3 else 0))):
        start = draw(st.integers(begin, end))
        stop = draw(st.integers(start, end))
        name = draw(st.sampled_from([MODULE + "a", MODULE + "b", MODULE, "aten::x", "assay::y"]))
        found.append(Span(start, stop, name))
        found += draw(nested(start, stop, depth + 1)) if stop > start else []
        begin = stop
        if begin >= end:
            break
    return found


@given(nested(), st.lists(st.tuples(st.none() | st.integers(-5, 245), st.integers(0, 9))))
def test_work_belongs_to_the_innermost_module_and_no_work_is_lost(spans, pieces):
    works = [Work(at, length) for at, length in pieces]
    found = attribute(spans, works)
    assert found.total == sum(w.length for w in works)
    # The plain way: of all spans open at that moment, in the order they were opened; of two that are open from and
    # until the same moment, the module is the outer one.
    spans = sorted(spans, key=lambda s: (s.start, -s.end, not s.module))
    expected = {}
    for work in works:
        open_ = [s for s in spans if work.at is not None and s.start <= work.at < s.end]
        modules = [i for i, s in enumerate(open_) if s.module]
        if not modules:
            continue
        inside = [s.name for s in open_[modules[-1] + 1 :]]
        key = open_[modules[-1]].name.removeprefix(MODULE), inside[0] if inside else ""
        expected[key] = expected.get(key, 0) + work.length
    assert {(p.path, p.operator): p.length for p in found.found} == expected


@given(nested())
def test_outermost_operators_do_not_overlap(spans):
    found = outermost(spans)
    for a, b in itertools.pairwise(found):
        assert a.at + a.length <= b.at


def test_the_profile_of_a_pass_sees_each_module_once():
    model = nn.Sequential(nn.Linear(64, 64), nn.Sequential(nn.LayerNorm(64), nn.GELU()))
    x = torch.randn(16, 64)
    with torch.no_grad():
        told = passes(model, lambda: model(x), 3, "cpu")
    assert {(p["path"], p["operator"]) for p in told["parts"]} == {
        ("0", "aten::linear"),
        ("1.0", "aten::layer_norm"),
        ("1.1", "aten::gelu"),
    }
    assert sum(p["seconds"] for p in told["parts"]) + told["between"] == pytest.approx(told["total"])


@dataclass(frozen=True)
class Event:
    """As the profiler gives them."""

    called: str
    device: DeviceType
    start: int
    length: int
    correlation: int = 0
    linked: int = 0
    annotation: bool = False

    def name(self):
        return self.called

    def device_type(self):
        return self.device

    def start_ns(self):
        return self.start

    def duration_ns(self):
        return self.length

    def correlation_id(self):
        return self.correlation

    def linked_correlation_id(self):
        return self.linked

    def is_user_annotation(self):
        return self.annotation

    def start_thread_id(self):
        return 1


def test_a_kernel_on_the_gpu_is_found_by_the_operator_or_the_call_that_launched_it():
    cpu, cuda = DeviceType.CPU, DeviceType.CUDA
    events = [
        Event(MODULE, cpu, 0, 100),
        Event(MODULE + "act", cpu, 10, 30),
        Event("assay::gelu__cuda", cpu, 12, 20, correlation=5),
        Event("cuLaunchKernelEx", cpu, 35, 1, correlation=77),
        Event("linked", cuda, 300, 7, correlation=70, linked=5),
        Event("called", cuda, 310, 11, correlation=77),
        Event("unknown", cuda, 330, 2, correlation=99),
        Event(MODULE + "act", cuda, 300, 40, annotation=True),  # the range, as the device's timeline repeats it
    ]
    found = attribute(profiled._spans(events), profiled._launched(events))
    assert {(p.path, p.operator): p.length for p in found.found} == {("act", "assay::gelu__cuda"): 7, ("act", ""): 11}
    assert found.unattributed == 2 and found.total == 20


def test_a_variant_that_cannot_be_captured_is_started_again_without_graphs(monkeypatch):
    started = []

    class Fresh:
        def __init__(self, *about):
            started.append(self)

        def ask(self, question, *more):
            refused = {"graphed": {"variant": "it waits for the host"}} if "graphed" in question["arms"] else {}
            return {"failures": refused}

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(process, "Fresh", Fresh)
    subject = planning.Setup("mnist-cnn", {}, "", "seeded", "fp32", "cuda", 0, 1)
    planned = planning.Plan(subject, Options(), 1.0, (), (1,), {}, {})
    one = process.Process(planned, Variant("numba", {"gelu": "gelu/numba"}), lambda text: None)
    process.prepare_all([one])
    assert len(started) == 2 and one.arms == ("eager", "compiled") and one.failure is None
    assert one.refused == {"graphed": "it waits for the host"}


def test_when_one_of_several_is_wrong_use_none_is_left_running(monkeypatch):
    closed = []

    class Fresh:
        def __init__(self, *about):
            pass

        def ask(self, question, *more):
            if question["rules"]:
                raise Refused(describe(UsageError("rule 'x' matches nothing")))
            return {}

        def __exit__(self, *_):
            closed.append(self)

    monkeypatch.setattr(process, "Fresh", Fresh)
    subject = planning.Setup("mnist-cnn", {}, "", "seeded", "fp32", "cuda", 0, 1)
    planned = planning.Plan(subject, Options(), 1.0, (), (1,), {}, {})
    several = [process.Process(planned, v, lambda text: None) for v in (Variant("torch"), Variant("swap", {"x": "y"}))]
    with pytest.raises(UsageError, match="matches nothing"):
        process.prepare_all(several)
    assert len(closed) == 2


def test_a_kernels_workload_is_told_as_bench_takes_it():
    from assay.catalog import library

    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, bias=False), nn.Flatten(), nn.LayerNorm(36, eps=1e-6)).eval()
    with torch.no_grad(), swap(model, {"conv2d": "conv2d/torch", "layernorm": "layernorm/torch"}) as report:
        found = calls(model, lambda: model(torch.randn(2, 3, 8, 8)), report)
    (conv,), (norm,) = (list(c.workloads) for c in found)
    assert conv == "n=2,c=3,h=8,w=8,k=4,r=3,s=3,stride=2,padding=0,dtype=fp32,without=bias"
    assert norm == "rows=2,cols=36,eps=1e-06,dtype=fp32"
    for text, op in ((conv, "conv2d"), (norm, "layernorm")):
        assert str(library.ops()[op].workload(text)) == text


# Arithmetic


def site(name, torch_=3.0, kernel=1.0, workload="n=4,dtype=fp32", count=1):
    called = Called(name, name, "gelu", "module", "gelu/njit", "assay::gelu__njit", {workload: count})
    part = {"path": name, "operator": "x", "pieces": 1}
    return called, part | {"seconds": torch_}, part | {"seconds": kernel}


def joined(*sites, alone):
    called, theirs, ours = zip(*sites, strict=True)
    profile = {"torch": {"total": 10.0, "parts": theirs}, "variant": {"total": 8.0, "parts": ours}}
    return rows(called, profile, alone)


def test_layers_stand_side_by_side_for_every_variant_and_repeated_ones_are_one_row():
    plain = [{"path": "enc.0.norm", "torch": 2.0}, {"path": "enc.1.norm", "torch": 3.0}, {"path": "", "torch": 1.0}]
    swapped = [{"path": "enc.0.norm", "torch": 2.0, "variant": 0.5}, {"path": "fused", "variant": 9.0}]
    assert by_layer({"torch": plain, "triton": swapped}) == [
        {"layer": "fused", "modules": 1, "seconds": {"triton": 9.0}},
        {"layer": "enc.*.norm", "modules": 2, "seconds": {"torch": 5.0, "triton": 0.5}},
        {"layer": "(the model)", "modules": 1, "seconds": {"torch": 1.0}},
    ]


def test_sites_are_summed_over_their_calls_and_alike_ones_are_shown_together():
    alone = Times(
        {("gelu/torch", "n=4,dtype=fp32"): Alone(2.0, 1.5), ("gelu/njit", "n=4,dtype=fp32"): Alone(1.0, 1.0)}, {}
    )
    table = joined(site("l.0.act", count=2), site("l.1.act"), alone=alone)
    assert [r["alone"]["torch"] for r in table] == [{"cold": 4.0, "hot": 3.0}, {"cold": 2.0, "hot": 1.5}]
    assert [r["share"] for r in table] == [0.3, 0.3]
    told = predicted(table, 10.0)
    assert told["cold"] == {"saving": 3.0, "speedup": pytest.approx(10 / 7)} and told["in_model"]["saving"] == 4.0
    (one,) = alike(table)
    assert one["site"] == "l.*.act" and one["calls"] == 3 and one["alone"]["kernel"]["cold"] == 3.0
    assert one["share"] == 0.6 and one["in_model"] == {"torch": 6.0, "kernel": 2.0}


def test_a_promise_that_cannot_be_made_says_why():
    missing = Times({}, {("gelu/torch", "n=4,dtype=fp32"): "it failed"})
    assert predicted(joined(site("act"), alone=missing), 10.0)["why"] == "act: gelu/torch: it failed"
    assert "not timed alone" in predicted(joined(site("act"), alone=None), 10.0)["why"]
    # More saved than there is: no speedup can be told.
    assert predicted(joined(site("act", torch_=12.0, kernel=0.0), alone=missing), 10.0)["in_model"]["speedup"] is None


def test_chance_is_not_called_a_failure_and_a_failure_is_not_called_chance():
    from assay.models.studies.infer.evidence import Measured

    off = {"rms": 9.0, "median": 9.0, "worst": 9.0, "astray": 0}
    about = {"failures": {}, "compile": {}}

    def verdict(share, elements):
        outputs = {"share": share, "note": "", "torch": off, "variant": off, "elements": elements}
        measured = Measured(
            Variant("njit", {"gelu": "gelu/njit"}), about, {}, [{"op": "gelu", "kernel": "gelu/njit"}], True
        )
        case = Case(None, "njit", {}, "eager", 1)
        return measured._verdict(case, {"outputs": {"variant": outputs}}, {}, "variant")[0]

    assert verdict(1.5, 1) is Status.INCONCLUSIVE
    assert verdict(1.5, ENOUGH) is Status.FAIL and verdict(BY_CHANCE + 1, 1) is Status.FAIL


def test_the_seconds_of_an_epoch_come_from_the_training_with_the_same_kernels(tmp_path, monkeypatch):
    from assay.store import open_store

    def trained(run, swap, seconds):
        config = {"swap": swap, "device": "cpu", "batch": 64, "images": 0}
        evidence = {"config": config, "seconds_per_epoch": seconds, "device": "cpu"}
        return Record("model", "mnist-cnn", "train data=mnist", Status.PASS, "", run, evidence)

    monkeypatch.setenv("ASSAY_STORE", str(tmp_path / "records.sqlite"))
    assert command._trained("mnist-cnn") == ()
    with open_store() as store:
        for record in (trained("a", {}, 9.0), trained("b", {"gelu": "gelu/njit"}, 12.0)):
            store.add(record)
    known = command._trained("mnist-cnn")
    assert known[1] == Trained({"gelu": "gelu/njit"}, "cpu", 12.0, 64, "b")
    planned = planning.Plan(
        planning.Setup("mnist-cnn", {}, "", "seeded", "fp32", "cpu", 0, 1),
        Options(trained=known),
        1.0,
        (),
        (),
        {},
        {},
    )
    assert training(Variant("njit", {"gelu": "gelu/njit"}), planned)["seconds_per_epoch"] == 12.0
    assert training(Variant("torch"), planned)["seconds_per_epoch"] == 9.0
    assert "--swap gelu=gelu/cupy" in training(Variant("cupy", {"gelu": "gelu/cupy"}), planned)["why"]


# The page


def test_the_page_of_results_is_what_the_records_give():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "model_tables.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


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
            parts = sum(layer.get(whose, 0.0) for layer in told["layers"])
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
    from assay.models.studies.infer.arms import NotCapturable, captured

    x = torch.randn(8, device="cuda")
    assert captured(lambda: x * 2).bytes > 0
    with pytest.raises(NotCapturable, match="cannot be captured"):
        captured(lambda: x * x.sum().item())
