"""What torch.compile costs and buys: the states are what they are called, and what is wrong is not called fast."""

import io
import itertools
import json
import textwrap
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.cli.model import compile as command
from assay.cli.model.study import draw
from assay.errors import UsageError
from assay.models.studies import study as shared
from assay.models.studies.compile import child
from assay.models.studies.compile.child import case, marks
from assay.models.studies.compile.evidence import break_even
from assay.models.studies.compile.planning import Case, Effort, Options, plan
from assay.models.studies.compile.verb import compile_study
from assay.record import document, read
from assay.worker import WorkerLost

TINY = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Tiny(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = nn.Linear(32, 32), nn.LayerNorm(32)

        def forward(self, x):
            return F.gelu(self.norm(self.linear(x))).softmax(-1)

    class Broken(Tiny):
        def forward(self, x):
            y = self.linear(x)
            print("a graph ends here")
            return y.relu()

    class Picky(Tiny):
        def forward(self, x):
            if torch.compiler.is_compiling():
                raise ValueError("not compiled, never")
            return x

    class Liar(Tiny):
        def forward(self, x):
            y = super().forward(x)
            return torch.zeros_like(y) if torch.compiler.is_compiling() else y

    def tiny(): return Tiny()
    def broken(): return Broken()
    def liar(): return Liar()
    def picky(): return Picky()
    def exact():
        assert not torch.backends.cudnn.allow_tf32
        return Tiny()
    def number(): return 3
    def example(batch): return torch.randn(batch, 32)
"""
ROOT = Path(__file__).parents[2]
QUICK = Effort(rounds=6, budget=0.2, calls=100, threads=1)
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    file = tmp_path_factory.mktemp("models") / "mine.py"
    file.write_text(textwrap.dedent(TINY))
    return file


@pytest.fixture(scope="module")
def study(models):
    """A real one: three processes of their own, a real compiler. Inductor is spared its search for vector units."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "0")
        options = Options(batches=(8,), device="cpu", effort=QUICK)
        return {r.evidence["state"]: r for r in compile_study(f"{models}:tiny", options)}


@pytest.fixture
def here(in_this_process):
    in_this_process(child, shared, end=torch._dynamo.reset)
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=False, suppress_errors=False, recompile_limit=8):
        yield


def quick(model, **more):
    return list(compile_study(str(model), Options(device="cpu", backend="eager", effort=QUICK, **more)))


# The real study


@pytest.mark.slow
def test_every_state_is_studied_and_right(study):
    assert list(study) == ["cold", "disk", "warm"]
    for record in study.values():
        assert record.status == "pass", record.reason
        assert record.verb == "model" and record.median > 0 and record.replay.startswith("assay model compile")
        assert record.evidence["outputs"]["share"] <= 1
        assert record.source["file"].endswith("mine.py") and record.source["hash"]


@pytest.mark.slow
def test_cold_compiles_everything_and_disk_finds_everything_in_the_cache(study):
    cold, disk = (study[s].evidence["counts"]["cache"] for s in ("cold", "disk"))
    assert cold["misses"] > 0 == cold["hits"]
    assert disk["hits"] > 0 == disk["misses"]


@pytest.mark.slow
def test_a_cache_saves_compiling_and_a_warm_process_saves_the_rest(study):
    cold, disk, warm = (study[s].evidence["compile_seconds"] for s in ("cold", "disk", "warm"))
    assert min(cold, disk) > 10 * warm  # a C++ compiler or loading what it left, against nothing
    caches = {state: record.evidence["counts"]["cache"] for state, record in study.items()}
    assert caches["cold"] == {"hits": 0, "misses": 1, "bypassed": 0}
    assert caches["disk"] == {"hits": 1, "misses": 0, "bypassed": 0}
    assert study["warm"].evidence["again"] > 0  # after a reset there is something to do again


@pytest.mark.slow
def test_graphs_and_kernels_are_counted(study):
    for record in study.values():
        told = record.evidence
        assert told["counts"]["graphs"] == 1 and told["counts"]["breaks"] == 0
        # linear, layer_norm, gelu, softmax; then the product, and everything after it in one C++ kernel
        assert told["kernels"]["eager"]["kernels"] == 4
        assert told["kernels"]["compiled"]["names"] == {"aten::addmm": 1}
        assert list(told["kernels"]["compiled"]["written"].values()) == [1]


@pytest.mark.slow
def test_the_curve_is_measured_and_begins_with_compiling(study):
    for record in study.values():
        for arm in ("eager", "compiled"):
            counts, seconds = zip(*record.evidence["curve"][arm], strict=True)
            assert counts[0] == 1 and list(seconds) == sorted(seconds)
    first = study["cold"].evidence["curve"]["compiled"][0][1]
    assert first == pytest.approx(study["cold"].evidence["compile_seconds"], rel=0.2)


@pytest.mark.slow
def test_records_survive_a_file(study, tmp_path):
    file = tmp_path / "records.json"
    file.write_text(json.dumps(document(study.values()), allow_nan=False))
    assert [r.workload for r in read(file)] == [r.workload for r in study.values()]


@pytest.mark.slow
def test_the_chart_has_a_line_for_every_state_and_becomes_a_picture_and_a_page(study, tmp_path):
    from assay.report.charts import compile as chart

    ways = {row["way"] for row in chart.lines(list(study.values()))}
    assert ways == set(chart.NAMES.values())
    page, picture = draw("compile", list(study.values()), tmp_path / "c.svg", tmp_path / "c.html")
    assert "compiled, warm disk cache" in picture.read_text()
    assert "pick_case" in page.read_text() and 'src="http' not in page.read_text()  # it needs nothing else


@pytest.mark.slow
def test_tables_fit_eighty_columns(study):
    from rich.console import Console

    terminal = Console(width=80, record=True, file=io.StringIO())
    command.show(list(study.values()), terminal)
    text = terminal.export_text()
    assert "…" not in text and all(word in text for word in ("cold", "pays after", "4 → 2"))


# What goes wrong


def test_a_crash_is_a_record_and_the_later_states_say_what_they_waited_for(monkeypatch, models):
    class Dying:
        def __init__(self, *about):
            pass

        def ask(self, *question):
            raise WorkerLost("crash", "the process died of SIGSEGV", "")

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(shared, "Fresh", Dying)
    cold, disk, warm = compile_study(f"{models}:tiny", Options(batches=(2,), device="cpu", effort=QUICK))
    assert cold.status == "fail" and "SIGSEGV" in cold.reason
    assert disk.status == warm.status == "skipped" and "SIGSEGV" in warm.reason


def test_a_process_that_takes_too_long_is_ended(models):
    (cold,) = compile_study(
        f"{models}:tiny", Options(batches=(2,), device="cpu", states=("cold",), timeout=0.05, effort=QUICK)
    )
    assert cold.status == "fail" and "0.05 s" in cold.reason


# What is wrong


def test_a_compiled_model_that_computes_something_else_fails(here, models):
    (record,) = quick(f"{models}:liar", batches=(4,), states=("cold",))
    assert record.status == "fail" and "wrong" in record.reason


def test_a_model_that_dynamo_leaves_to_eager_is_not_called_compiled(here, models):
    (record,) = quick(f"{models}:picky", batches=(4,), states=("cold",))
    assert record.status == "fail" and "nothing was compiled" in record.reason


def test_a_compilers_complaint_is_one_line_of_reason_and_whole_in_the_evidence(here, models):
    options = Options(batches=(4,), states=("cold",), device="cpu", backend="nosuch", effort=QUICK)
    (record,) = compile_study(f"{models}:tiny", options)
    assert record.status == "fail" and len(record.reason.splitlines()) == 1
    told = record.evidence["failure"]
    assert told["type"] == "InvalidBackend" and "nosuch" in told["message"] and "torch.compile" in told["trace"]


def test_fp32_is_fp32_in_convolutions_too(here, models):
    """Else cuDNN may take TF32 for inductor's layout and not for eager's."""
    (record,) = quick(f"{models}:exact", batches=(4,), states=("cold",))
    assert record.status == "pass", record.reason


def test_graph_breaks_are_named_with_their_line(here, models):
    (record,) = quick(f"{models}:broken", batches=(4,), states=("cold",))
    (found,) = record.evidence["graph_breaks"]
    line = next(i for i, text in enumerate(models.read_text().splitlines(), 1) if "print(" in text)
    assert found["where"].endswith(f"mine.py:{line}") and "print" in found["code"] and found["reason"]
    assert record.evidence["counts"]["graphs"] == 2 and record.evidence["counts"]["breaks"] == 1


def test_reaching_the_recompile_limit_is_a_failure_not_a_quiet_fall_back(here, models):
    sizes = (2, 3, 4)
    limited = Options(
        batches=sizes,
        device="cpu",
        backend="eager",
        states=("sweep",),
        dynamic=False,
        effort=Effort(rounds=6, threads=1, limit=2),
    )
    (record,) = compile_study(f"{models}:tiny", limited)
    assert record.status == "fail" and "gives up after 2 compilations" in record.reason
    assert "--recompile-limit 2" in record.replay


def test_static_shapes_compile_for_every_batch_and_dynamic_ones_once(here, models):
    (static,) = quick(f"{models}:tiny", batches=(2, 3, 4), states=("sweep",), dynamic=False)
    (dynamic,) = quick(f"{models}:tiny", batches=(2, 3, 4), states=("sweep",), dynamic=True)
    assert [s["compilations"] for s in static.evidence["steps"]] == [1, 1, 1]
    assert [s["compilations"] for s in dynamic.evidence["steps"]] == [1, 0, 0]
    assert static.evidence["recompiles"] == 2 and "size mismatch" in static.evidence["recompile_reasons"][-1]


def test_what_has_no_meaning_here_is_skipped_with_the_reason(here, models):
    records = quick(f"{models}:tiny", batches=(2,), states=("disk",))
    records += quick(f"{models}:tiny", batches=(2,), states=("cold",), modes=("reduce-overhead",))
    assert [r.status for r in records] == ["skipped", "skipped"]
    assert "on disk" in records[0].reason and "CUDA graphs" in records[1].reason


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"states": ("tepid",)}, "no state called 'tepid'"),
        ({"modes": ("fast",)}, "no mode called 'fast'"),
        ({"batches": (0,)}, "at least one"),
        ({"dtype": "fp64"}, "fp64"),
        ({"dtype": "int8"}, "int8"),
        ({"states": ("sweep",), "batches": (4,)}, "more than one batch"),
        ({"device": "tpu"}, "no device called 'tpu'"),
    ],
)
def test_wrong_use_is_said_before_anything_is_compiled(settings, says):
    with pytest.raises(UsageError, match=says) as caught:
        plan("mnist-cnn", Options(**({"device": "cpu"} | settings)))
    assert caught.value.fix


def test_a_model_that_is_none_is_an_error_with_a_fix(here, models):
    with pytest.raises(UsageError, match=r"returned a int, not a torch.nn.Module"):
        quick(f"{models}:number")
    with pytest.raises(UsageError, match="no model called 'nosuch'"):
        plan("nosuch", Options())


# The arithmetic


@st.composite
def rounds(draw, low=1e-6, high=1.0):
    return [[draw(st.floats(low, high))] for _ in range(draw(st.integers(6, 20)))]


@given(st.floats(1e-3, 100), rounds(), st.floats(0.01, 0.99))
def test_break_even_is_the_first_call_at_which_compiled_is_not_behind(cost, eager, factor):
    fast = [[s * factor for s in r] for r in eager]
    found = break_even(cost, eager, fast)
    assert found.verdict == "after"
    assert found.calls * found.saving >= cost * (1 - 1e-9)
    assert (found.calls - 1) * found.saving < cost * (1 + 1e-9)
    low, high = found.calls_interval
    assert low <= found.calls <= high


@given(rounds(), st.floats(1.0, 10))
def test_what_is_slower_never_pays_and_what_is_already_paid_pays_at_once(eager, factor):
    slow = [[s * factor for s in r] for r in eager]
    assert break_even(1.0, eager, slow).verdict == "never"
    assume(factor > 1.001)
    assert break_even(0.0, slow, eager).verdict == "at once"


@given(st.integers(6, 20), st.floats(0.1, 10))
def test_a_saving_whose_interval_has_zero_in_it_is_ambiguous(count, cost):
    eager = [[1.0 + 0.1 * (-1) ** i] for i in range(count)]
    compiled_ = [[1.0 - 0.1 * (-1) ** i] for i in range(count)]
    found = break_even(cost, eager, compiled_)
    assert found.verdict == "ambiguous" and found.calls is None
    assert found.interval[0] < 0 < found.interval[1]


@given(st.integers(1, 10**7))
def test_marks_rise_from_one_to_the_last_call(most):
    found = list(marks(most))
    assert found[0] == 1 and found[-1] == most
    assert all(a < b <= 2.5 * a for a, b in itertools.pairwise(found))


@given(
    st.lists(st.integers(1, 4096), min_size=1, max_size=4, unique=True),
    st.sampled_from(["fp32", "bf16"]),
    st.sampled_from(["cold", "disk", "warm", "sweep"]),
    st.sampled_from(["default", "max-autotune"]),
    st.sampled_from([None, True, False]),
    st.sampled_from(["inductor", "eager"]),
)
def test_a_case_survives_the_channel_and_its_workload_says_all_of_it(batches, dtype, state, mode, dynamic, backend):
    asked = Case("m", tuple(batches), dtype, "cpu", state, mode, dynamic, backend)
    again = case(json.loads(json.dumps(asdict(asked))))
    assert again == asked and str(again) == str(asked)
    other = Case("m", tuple(batches), dtype, "cpu", state, mode, not dynamic, backend)
    assert str(other) != str(asked) and other.replay() != asked.replay()


def test_calls_of_generated_kernels_are_counted_in_cpp_and_in_triton():
    source = """
        cpp_fused_0 = async_compile.cpp_pybinding(['float*'], 'code')
        triton_poi_1 = async_compile.triton('triton_poi_1', 'code')
        unused = async_compile.triton('unused', 'code')
        class Runner:
            def call(self, args):
                buf0 = extern_kernels.mm(args[0], args[1])
                cpp_fused_0(buf0, buf1)
                triton_poi_1.run(buf1, 5, stream=stream0)
                triton_poi_1.run(buf2, 5, stream=stream0)
        def benchmark():
            cpp_fused_0(1, 2)
    """
    assert child.kernel_calls(textwrap.dedent(source)) == ["cpp_fused_0", "triton_poi_1", "triton_poi_1"]


@pytest.mark.parametrize(
    ("name", "does"),
    [
        ("aten::addmm", True),
        ("aten::view", False),
        ("aten::transpose", False),
        ("aten::empty", False),
        ("aten::flatten", False),
        ("aten::relu_", True),
        ("mine::made_up", True),
    ],
)
def test_operators_that_only_reshape_are_not_counted_as_kernels(name, does):
    assert child.computes(name) is does


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_on_a_gpu_every_state_is_studied_and_kernels_are_cuptis(models, mode):
    options = Options(batches=(64,), device="cuda", modes=(mode,), effort=QUICK)
    for record in compile_study(f"{models}:tiny", options):
        assert record.status == "pass", record.reason
        kernels = record.evidence["kernels"]
        assert 0 < kernels["compiled"]["kernels"] < kernels["eager"]["kernels"]
        assert record.evidence["device_steady"]["compiled"]["median"] > 0
