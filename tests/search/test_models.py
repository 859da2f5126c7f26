"""Searches with real models, on made-up images that are learned in a second: chosen on validation, judged on test."""

import json
import re
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("optuna")

import assay  # noqa: E402
import search_run  # noqa: E402
from assay.compress import items  # noqa: E402
from assay.errors import UsageError  # noqa: E402
from assay.models.subject.data.datasets import DATASETS  # noqa: E402
from assay.models.subject.data.digits import Digits  # noqa: E402
from assay.search import child, planning, storage, verb  # noqa: E402
from assay.search.options import Architecture, Precision, Sensitivity  # noqa: E402
from assay.search.subjects import precision as subjects  # noqa: E402

ROOT = Path(__file__).parents[2]
MINE = """
from torch import nn, rand

KNOBS = {"width": ["16", "32"], "pool": ["1", "2", "3"]}


def build(width="16", pool="1"):
    if 28 % int(pool):
        raise ValueError(f"28 is no multiple of {pool}")
    size = (28 // int(pool)) ** 2
    return nn.Sequential(nn.AvgPool2d(int(pool)), nn.Flatten(), nn.Linear(size, int(width)), nn.GELU(),
                         nn.Linear(int(width), 10))


def example(batch):
    return rand(batch, 1, 28, 28)
"""


def images(count, seed):
    """A bright bar whose place is the class, in noise."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=rng)
    pixels = torch.randint(0, 120, (count, 1, 28, 28), dtype=torch.uint8, generator=rng)
    for image, label in zip(pixels, labels, strict=True):
        image[0, 2 * int(label) : 2 * int(label) + 4] += 90
    return Digits("mnist", pixels, labels, {"made": "up"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of all tests here: the base model is trained once."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def made_up(monkeypatch, folder, tmp_path, one_thread):
    """The data, and how often each split of it was looked at by a model that is judged."""
    monkeypatch.setenv("ASSAY_DATA", str(folder))
    monkeypatch.setattr(storage, "FILE", str(tmp_path / "studies.sqlite"))
    splits = {"train": images(384, 0), "validation": images(100, 1), "test": images(100, 2)}
    known = replace(DATASETS["mnist"], read=lambda names, tokens, tell: tuple(splits[name] for name in names))
    monkeypatch.setitem(DATASETS, "mnist", known)
    looks = Counter()
    right = items.right

    def counted(model, data):
        looks[next(name for name, split in splits.items() if torch.equal(split.labels, data.labels))] += 1
        return right(model, data)

    monkeypatch.setattr(items, "right", counted)
    child._here.clear()
    yield looks
    child._here.clear()


def searched(plan):
    return list(verb.run(plan, scheduler=search_run.Inline(child)))


@pytest.mark.slow
def test_a_precision_search_reads_the_test_split_once_for_the_winner_and_keeps_its_model(made_up, tmp_path):
    file = tmp_path / "winner.safetensors"
    options = Precision(trials=4, quick=True, device="cpu", widths=(2, 8), points=50.0, save=file)
    control, *trials, winner = searched(planning.precision("mnist-cnn", options))
    assert (control.evidence["role"], winner.evidence["role"]) == ("control", "winner")
    assert made_up["test"] == 2  # the winner, and the control beside it
    assert len(trials) == 4 and all(str(r.status) == "pass" for r in trials)
    best = min((r for r in trials if r.evidence["allowed"]), key=lambda r: r.evidence["bits"])
    assert winner.evidence["bits"] == best.evidence["bits"]
    assert winner.evidence["accuracy"] == best.evidence["accuracy"]  # the very same model again
    # The bits are those of the file, which `assay.load` reads.
    model = assay.load(file)
    widths = {f"{path}.weight": int(form.split(":")[1]) for path, form in formats(winner, "weight").items()}
    for path, layer in model.named_modules():
        if f"{path}.weight" in widths:
            assert len(layer.weight.unique()) <= 2 ** widths[f"{path}.weight"]
    assert {name: str(width) for name, width in widths.items()}.items() <= winner.evidence["parameters"].items()
    overhead = 8 * file.stat().st_size - winner.evidence["bits"]
    assert 0 < overhead < 8 * 8192  # the file's header


def formats(record, part):
    return {layer["path"]: layer[part] for layer in record.evidence["layers"]}


def packed(model):
    found = {path: re.search(r"format=([\w:]+)", repr(module)) for path, module in model.named_children()}
    return {path: match[1] for path, match in found.items() if match}


def test_latency_is_that_of_the_packed_model(made_up):
    asked = {"trials": 3, "quick": True, "device": "cpu", "goals": ("accuracy", "latency"), "points": None}
    options = Precision(**asked, formats=("int:W:channel",), widths=(4, 8), of=("weights",))
    control, *rest = searched(planning.precision("mnist-cnn", options))
    assert control.evidence["latency"] > 0 and all(r.evidence["latency"] > 0 for r in rest)
    subject = subjects.Precision(planning.precision("mnist-cnn", options).studies[0].setup, lambda text: None)
    point = {"fc1.weight": "4", "fc2.weight": "8", "conv1.weight": "8"}
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subjects, "latency", lambda model, inputs, device: seen.append(packed(model)) or 1e-3)
        subject.judged(point)
    assert seen == [{"fc1": "int4:channel", "fc2": "int8:channel"}]  # no kernel convolves with packed weights


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"formats": ("fixed",)}, "no kernel computes with fixed:4:F"),
        ({"formats": ("int:W:channel",), "widths": (4, 6)}, "no kernel computes with int:6:channel"),
        ({"formats": ("int:W:channel",), "of": ("weights", "inputs")}, "inputs in fewer bits"),
    ],
)
def test_the_latency_of_a_format_without_a_kernel_is_no_goal(more, why):
    asked = {"goals": ("latency",), "widths": (4, 8), "of": ("weights",), "points": None}
    with pytest.raises(UsageError, match=why):
        planning.precision("mnist-cnn", Precision(**asked | more))


def test_training_in_the_format_and_offsets_are_searched_like_widths(made_up):
    options = Precision(trials=2, quick=True, device="cpu", widths=(3,), offsets=(-1, 0, 1), of=("weights",), epochs=1)
    control, first, *_ = searched(planning.precision("mnist-cnn", options))
    assert control.evidence["epochs"] == 1
    assert {name.rpartition(".")[2] for name in first.evidence["parameters"]} == {"weight", "offset"}
    assert first.evidence["bits"] < control.evidence["bits"] / 8


def test_sensitivity_is_every_tensor_in_every_width_and_no_look_at_the_test_split(made_up):
    options = Sensitivity(quick=True, device="cpu", widths=(2, 8), of=("weights",))
    _, *trials = searched(planning.sensitivity("mnist-cnn", options))
    points = {(r.evidence["parameters"]["tensor"], r.evidence["parameters"]["width"]) for r in trials}
    assert points == {(f"{layer}.weight", w) for layer in ("conv1", "conv2", "fc1", "fc2") for w in ("2", "8")}
    assert made_up["test"] == 0
    for record in trials:
        (layer,) = record.evidence["layers"]
        assert f"{layer['path']}.weight" == record.evidence["parameters"]["tensor"]


@pytest.mark.slow
def test_an_architecture_search_trains_compresses_and_recovers_each_in_its_own_study(made_up, write):
    model = f"{write('mine.py', MINE)}:build"
    modes = ("train", "compress", "recover")
    options = Architecture(
        trials=3,
        quick=True,
        device="cpu",
        data="mnist",
        training=1,
        modes=modes,
        format="int:2:channel",
        sampler="grid",
        goals=("accuracy", "bits", "latency"),
    )
    records = searched(planning.architecture(model, options))
    finished = [r.evidence for r in records if r.evidence["role"] == "trial" and r.evidence["state"] == "finished"]
    by_mode = {mode: {str(e["parameters"]): e for e in finished if e["mode"] == mode} for mode in modes}
    assert [len(found) for found in by_mode.values()] == [3, 3, 3]
    shared = set(by_mode["train"]) & set(by_mode["compress"]) & set(by_mode["recover"])
    for shape in shared:
        assert by_mode["compress"][shape]["bits"] < by_mode["train"][shape]["bits"] / 4
        assert by_mode["recover"][shape]["bits"] == by_mode["compress"][shape]["bits"]
    assert all(e["latency"] > 0 for e in finished)
    pruned = [r for r in records if r.evidence.get("state") == "pruned"]
    assert all("28 is no multiple of 3" in r.reason and str(r.status) == "skipped" for r in pruned)
    assert {r.evidence["role"] for r in records} == {"trial", "winner"}


def test_a_dead_knob_refuses_the_study_and_leaves_nothing_in_the_storage(made_up, write, tmp_path):
    text = MINE.replace("KNOBS = {", 'KNOBS = {"colour": ["red", "green"], ').replace(
        "build(width", "build(colour, width"
    )
    options = Architecture(trials=3, quick=True, device="cpu", data="mnist", storage=str(tmp_path / "s.sqlite"))
    plan = planning.architecture(f"{write('mine.py', text)}:build", options)
    with pytest.raises(UsageError, match="all values of colour give the same model") as refused:
        searched(plan)
    assert "leave out colour" in refused.value.fix
    assert storage.Storage(str(tmp_path / "s.sqlite")).names() == []


@pytest.mark.slow
def test_a_whole_command_prints_one_document(made_up, assay, monkeypatch):
    monkeypatch.setattr(verb, "_local", lambda plan, tick: search_run.Inline(child))
    command = ("search", "precision", "mnist-cnn", "--trials", "2", "--width", "4,8", "--quick", "--device", "cpu")
    done = assay(*command, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["verb"], document["study"]) == (0, "search", "precision")
    roles = [record["evidence"]["role"] for record in document["records"]]
    assert roles == ["control", "trial", "trial", "winner"]
    shown = assay(*command)
    assert "winner" in shown.stdout and "smaller" in shown.stdout
    table = assay("search", "sensitivity", "mnist-cnn", "--width", "4", "--of", "weights", "--quick", "--device", "cpu")
    assert "points against the control" in table.stdout and "fc1.weight" in table.stdout


@pytest.mark.slow
def test_the_examples_in_the_docs_run(made_up, assay, monkeypatch, tmp_path):
    """Blocks marked `run`: files are written, commands must end well and print what is promised."""
    monkeypatch.setattr(verb, "_local", lambda plan, tick: search_run.Inline(child))
    page = (ROOT / "docs" / "search.md").read_text()
    said = ""
    ran = 0
    for language, about, body in re.findall(r"^```(\w+)([^\n]*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if name := re.search(r"file=(\S+)", about):
            (tmp_path / name[1]).write_text(body)
        elif language == "python":
            exec(compile(body, "docs/search.md", "exec"), {})
        elif language == "sh":
            for line in body.splitlines():
                done = assay(*shlex.split(line)[1:], cwd=tmp_path)
                assert done.returncode == 0, done.stderr
                said, ran = done.stdout, ran + 1
        else:
            assert all(line in said for line in body.splitlines()), said
    assert ran == 4
