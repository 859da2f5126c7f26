"""Variants of a model, without processes: the same function, and whatever is wrong is said with its place."""

import sys
from dataclasses import replace

import pytest
import torch

from assay.errors import UsageError
from assay.models.studies.infer import Options, plan, truth
from assay.models.studies.infer.evidence import (
    ENOUGH,
)
from assay.models.studies.infer.variants import variants
from assay.models.subject.registry import entry
from inference import QUICK, by, here, quick, users_folder  # noqa: F401

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
    assert "not timed alone" in njit["predicted"]["why"] and njit["predicted"]["cold"] is None


@pytest.mark.usefixtures("here")
def test_every_layer_has_its_time_and_nothing_is_lost():
    told = quick("mnist-cnn", batches=(4,), variants=("njit",))[0].evidence
    named = {"conv1", "act1", "conv2", "act2", "pool", "fc1", "act3", "fc2"}
    assert named <= {layer["path"] for layer in told["layers"]}
    for whose in ("torch", "variant"):
        profile = told["profile"][whose]
        parts = sum(layer[whose] or 0.0 for layer in told["layers"])
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
        assert layers[first]["variant"] is None and site["in_model"]["kernel"] > 0


@pytest.mark.usefixtures("here")
def test_a_functional_call_is_a_site_of_the_module_that_makes_it(users):
    told = quick(f"{users / 'model.py'}:tiny", batches=(8,), variants=("njit",))[0].evidence
    assert [(s["site"], s["form"]) for s in told["sites"]] == [
        ("act", "module"),
        ("norm", "module"),
        ("(the model)", "function"),
    ]
    functional = told["sites"][-1]
    assert functional["in_model"]["torch"] > 0 and functional["in_model"]["kernel"] > 0


@pytest.mark.usefixtures("here")
def test_a_wrong_kernel_is_a_failure_that_names_the_module(users):
    records = quick(f"{users / 'model.py'}:tiny", batches=(1, 8), swap={"gelu": str(users / "tanh.py")})
    assert [r.evidence["variant"] for r in records] == ["torch", "torch", "swap", "swap"]
    for record in records[2:]:
        assert record.status == "fail" and "the outputs are wrong" in record.reason
        assert "the first module that is off: act; gelu/torch:tanh is in " in record.reason
        assert record.reason.endswith("tanh.py:6"), "the record's source is the model's file"
        assert record.evidence["outputs"]["share"] > 1 and "--swap gelu=" in record.replay


@pytest.mark.usefixtures("here")
def test_looking_for_the_wrong_module_keeps_rows_of_every_output_not_all_of_it():
    wide = torch.arange(4096.0 * 1024).reshape(4096, 1024)
    kept = truth._some(wide)
    assert kept.shape[1] == 1024 and kept.numel() <= truth._MOST and kept[-1, 0] > 0.9 * wide[-1, 0]
    assert torch.equal(truth._some(wide[:64]), wide[:64])


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_packed_weights_are_told_by_their_bytes_and_their_noise_and_are_not_called_wrong(users):
    rules = {"linear": "mx_linear", "gelu": "gelu"}
    record = by(quick(f"{users / 'model.py'}:tiny", batches=(8,), swap=rules, alone=(8,)), variant="swap")
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
def test_a_right_kernel_of_the_users_passes_at_one_element(users):
    records = quick(f"{users / 'model.py'}:tiny", batches=(1,), swap={"act": str(users / "right.py")})
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


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_the_kernels_are_inside_the_compiled_graph_and_breaks_are_counted(users):
    more = {"arms": ("eager", "compiled"), "backend": "aot_eager", "variants": ("njit",), "batches": (8,)}
    whole = by(quick(f"{users / 'model.py'}:tiny", **more), arm="compiled")
    assert whole.status == "pass", whole.reason
    assert whole.evidence["compile"]["variant"]["graphs"] == 1 and whole.evidence["compile"]["variant"]["breaks"] == 0
    assert {s["traced"] for s in whole.evidence["swap"] if s["state"] == "replaced"} == {1}
    assert "sites" not in whole.evidence and "in_model" in whole.evidence["predicted"]
    parted = by(quick(f"{users / 'model.py'}:broken", **more), arm="compiled")
    assert parted.evidence["compile"]["variant"]["breaks"] == 1 and "1 graph break" in parted.reason
    assert any("print" in reason for reason in parted.evidence["compile"]["variant"]["break_reasons"])


@pytest.mark.usefixtures("here")
def test_an_exception_in_the_users_model_names_its_line(users):
    with pytest.raises(UsageError, match="has no attribute 'missing'") as told:
        quick(f"{users / 'model.py'}:raises", batches=(8, 16))
    assert str(users / "model.py") in told.value.where


@pytest.mark.usefixtures("here")
def test_a_batch_that_takes_too_long_is_left_out_and_says_so(users):
    effort = replace(QUICK, budget=1e-9)
    (record,) = quick(f"{users / 'model.py'}:single", batches=(8,), variants=("torch",), effort=effort)
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


def test_a_rule_may_name_a_language_as_for_swap():
    (own,) = (v for v in variants((), "cpu", ("swap",), {"gelu": "njit", "layernorm+gelu": "njit"}) if v.name == "swap")
    assert not own.cannot and own.mode == "native" and dict(own.rules) == {"gelu": "njit", "layernorm+gelu": "njit"}
