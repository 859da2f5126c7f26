"""The times alone and in the model put together, the verdict, and the processes that are asked for them."""

from types import SimpleNamespace

import pytest

from assay.cli.model import infer as command
from assay.errors import UsageError
from assay.models.studies import study as shared
from assay.models.studies.agreement import Errors
from assay.models.studies.infer import Options, Plan, Trained, planning, verb
from assay.models.studies.infer import alone as alone_module
from assay.models.studies.infer.alone import Times
from assay.models.studies.infer.evidence import (
    BY_CHANCE,
    ENOUGH,
    Alone,
    Called,
    Gain,
    InferEvidence,
    Inside,
    Layer,
    Outputs,
)
from assay.models.studies.infer.joined import Repeated, alike, by_layer, predicted, rows
from assay.models.studies.infer.variants import Variant
from assay.models.studies.infer.verdict import Measured, training
from assay.models.subject.subject import Setup
from assay.record import Record, Status
from assay.worker.failure import describe
from assay.worker.fresh import Refused


def test_a_kernel_that_is_timed_without_results_that_pytorch_does_not_give_is_found_again(monkeypatch):
    """LayerNorm is timed without mean and rstd beside PyTorch, and the model asks for the workload as it has it."""
    text = "rows=4,cols=8,eps=1e-05,dtype=fp32"
    monkeypatch.setattr(
        alone_module, "_wanted", lambda planned: {("layernorm", text): {"layernorm/njit": "layernorm/njit"}}
    )

    def run(plans, options, tick):
        for plan in plans:
            assert "without=mean+rstd" in str(plan.workload)
            for kernel in plan.kernels:
                evidence = {"hot": {"median": 1e-6, "interval": [1e-6, 1e-6]}}
                common = {"verb": "bench", "status": Status.PASS, "reason": "", "run": "r", "provenance": {}}
                yield Record(kernel=kernel.name, workload=str(plan.workload), median=2e-6, evidence=evidence, **common)

    monkeypatch.setattr(alone_module.bench, "run", run)
    planned = SimpleNamespace(alone=(4,), options=Options(), budget=1.0, subject=SimpleNamespace(device="cpu"))
    times = alone_module.times(planned, lambda text: None)
    assert times.of("layernorm/njit", text) == times.of("layernorm/torch", text) == Alone(2e-6, 1e-6)


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

    monkeypatch.setattr(shared, "Fresh", Fresh)
    planned = Plan(Setup("mnist-cnn", "fp32", "cuda", threads=1), Options(), 1.0, batches=(1,))
    one = verb.Process(planned, Variant("numba", {"gelu": "gelu/numba"}), lambda text: None)
    verb.prepare_all([one])
    assert len(started) == 2 and one.arms == ("eager", "compiled") and one.failure is None
    assert one.refused == {"graphed": "it waits for the host"}


def test_graphs_alone_are_refused_on_a_cpu_before_anything_runs():
    with pytest.raises(UsageError, match="needs a GPU") as refused:
        planning.plan("mnist-cnn", Options(arms=("graphed",), device="cpu"))
    assert "--arm eager,compiled" in refused.value.fix


def test_a_variant_that_can_be_run_in_none_of_the_arms_is_skipped_with_the_reason(monkeypatch):
    class Fresh:
        def __init__(self, *about):
            pass

        def ask(self, question, *more):
            return {"failures": {"graphed": {"variant": "it waits for the host"}}}

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(shared, "Fresh", Fresh)
    setup = Setup("mnist-cnn", "fp32", "cuda", threads=1)
    planned = Plan(setup, Options(arms=("graphed",)), 1.0, (Variant("numba", {"gelu": "gelu/numba"}),), batches=(1, 4))
    monkeypatch.setattr(verb, "times", lambda planned, tick: None)
    records = list(verb.run(planned))
    assert [(str(r.status), r.evidence["batch"]) for r in records] == [("skipped", 1), ("skipped", 4)]
    assert all("it waits for the host" in r.reason for r in records)


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

    monkeypatch.setattr(shared, "Fresh", Fresh)
    planned = Plan(Setup("mnist-cnn", "fp32", "cuda", threads=1), Options(), 1.0, batches=(1,))
    several = [verb.Process(planned, v, lambda text: None) for v in (Variant("torch"), Variant("swap", {"x": "y"}))]
    with pytest.raises(UsageError, match="matches nothing"):
        verb.prepare_all(several)
    assert len(closed) == 2


# Arithmetic


def site(name, torch_=3.0, kernel=1.0, workload="n=4,dtype=fp32", count=1):
    called = Called(name, name, "gelu", "module", "gelu/njit", {workload: count}, "assay::gelu__njit")
    part = {"path": name, "operator": "x", "pieces": 1}
    return called, part | {"seconds": torch_}, part | {"seconds": kernel}


def joined(*sites, alone, latency=None):
    called, theirs, ours = zip(*sites, strict=True)
    profile = {"torch": {"total": 10.0, "parts": theirs}, "variant": {"total": 8.0, "parts": ours}}
    return rows(called, profile, alone, latency)


def test_layers_stand_side_by_side_for_every_variant_and_repeated_ones_are_one_row():
    plain = [Layer("enc.0.norm", 2.0), Layer("enc.1.norm", 3.0), Layer("", 1.0)]
    swapped = [Layer("enc.0.norm", 2.0, 0.5), Layer("fused", variant=9.0)]
    assert by_layer({"torch": plain, "triton": swapped}) == [
        Repeated("fused", 1, {"triton": 9.0}, {"triton": 0.0}),
        Repeated("enc.*.norm", 2, {"torch": 5.0, "triton": 0.5}, {"torch": 5.0, "triton": 2.0}),
        Repeated("(the model)", 1, {"torch": 1.0}, {"torch": 1.0}),
    ]


def test_sites_are_summed_over_their_calls_and_alike_ones_are_shown_together():
    alone = Times(
        {("gelu/torch", "n=4,dtype=fp32"): Alone(2.0, 1.5), ("gelu/njit", "n=4,dtype=fp32"): Alone(1.0, 1.0)}, {}
    )
    table = joined(site("l.0.act", count=2), site("l.1.act"), alone=alone)
    assert [r.alone.torch for r in table] == [Alone(4.0, 3.0), Alone(2.0, 1.5)]
    assert [r.share for r in table] == [0.3, 0.3]
    promise = predicted(table, 10.0)
    assert promise.cold == Gain(3.0, pytest.approx(10 / 7)) and promise.in_model.saving == 4.0
    (one,) = alike(table)
    assert one.site == "l.*.act" and one.calls == 3 and one.alone.kernel.cold == 3.0
    assert one.share == 0.6 and one.in_model == Inside(6.0, 2.0)


@pytest.mark.parametrize(
    ("latency", "marked"),
    [
        ({"torch": 10.0, "variant": 8.0}, [False, False]),
        ({"torch": 4.0, "variant": 8.0}, [True, False]),
        ({"torch": 10.0, "variant": 1.5}, [False, True]),
        ({"torch": 6.5, "variant": 8.0}, [True, True]),
        ({}, [False, False]),
    ],
    ids=["within the pass", "by PyTorch", "by the kernel", "only together", "nothing was timed"],
)
def test_a_site_that_takes_longer_than_the_whole_pass_predicts_nothing(latency, marked):
    table = joined(site("act", torch_=5.0), site("norm", torch_=2.0, kernel=1.6), alone=None, latency=latency)
    assert [row.exceeds for row in table] == marked
    assert (predicted(table, 10.0).in_model is None) is any(marked)
    assert any(row.exceeds for row in alike(table)) is any(marked)


def test_a_promise_that_cannot_be_made_says_why():
    missing = Times({}, {("gelu/torch", "n=4,dtype=fp32"): "it failed"})
    assert predicted(joined(site("act"), alone=missing), 10.0).why == "act: gelu/torch: it failed"
    assert "not timed alone" in predicted(joined(site("act"), alone=None), 10.0).why
    # More saved than there is: no speedup can be told.
    assert predicted(joined(site("act", torch_=12.0, kernel=0.0), alone=missing), 10.0).in_model.speedup is None


def test_chance_is_not_called_a_failure_and_a_failure_is_not_called_chance():
    off = Errors(9.0, 9.0, 9.0)
    measured = Measured(None, Variant("njit", {"gelu": "gelu/njit"}), {"failures": {}}, {}, [], [])

    def verdict(share, elements):
        outputs = Outputs(off, off, share, elements=elements)
        return measured.verdict(InferEvidence(arm="eager", rules=measured.variant.rules, outputs=outputs))[0]

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
    planned = Plan(Setup("mnist-cnn", "fp32", "cpu", threads=1), Options(trained=known), 1.0)
    assert training(Variant("njit", {"gelu": "gelu/njit"}), planned).seconds_per_epoch == 12.0
    assert training(Variant("torch"), planned).seconds_per_epoch == 9.0
    assert "--swap gelu=gelu/cupy" in training(Variant("cupy", {"gelu": "gelu/cupy"}), planned).why
