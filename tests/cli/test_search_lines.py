"""What `assay search` prints beside its table: that a study continues, and why it has no winner."""

import re

import pytest

pytest.importorskip("optuna")

import search_child
import search_run
from assay.search import verb
from command import assay


@pytest.fixture
def search(tmp_path, monkeypatch):
    """The command with the trials of `search_child`, none of which is within half a point of the control."""
    right = search_child.judged

    def judged(a, b):
        return right(a, b) | {"accuracy": 0.9 - 0.01 * (int(a) + int(b))}

    monkeypatch.setattr(search_child, "judged", judged)
    monkeypatch.setattr(verb, "_local", lambda plan, tick: search_run.Inline(search_child))
    monkeypatch.setenv("SEARCH_LOG", str(tmp_path / "log"))
    store = ("--storage", str(tmp_path / "studies.sqlite"), "--sampler", "random", "--device", "cpu")
    return lambda *words: assay("search", "precision", "mnist-cnn", "--study", "s", *store, *words)


def test_a_study_without_a_winner_says_why_and_names_its_nearest_trial(search, tmp_path):
    file = tmp_path / "model.safetensors"
    said = search("--trials", "4", "--save", str(file)).out
    assert "no winner: none of 4 trials is within 0.5 points of the control: more --trials or --points" in said
    nearest = re.search(r"the nearest is trial \d: (.*)% of .*, -(\S+) points; (\d+) bits", said)
    assert nearest
    assert float(nearest[1]) + float(nearest[2]) == pytest.approx(90.0)
    assert int(nearest[3]) == 1000 - 10 * round(float(nearest[2]))
    judged = [sum(map(int, line.split()[1:3])) for line in (tmp_path / "log").read_text().splitlines()]
    assert round(float(nearest[2])) == min(judged)
    assert f"{file}: nothing was saved: no winner" in said and not file.exists()


def test_a_search_with_a_winner_says_nothing_of_the_kind(search):
    said = search("--trials", "4", "--points", "100").out
    assert "winner" in said and "no winner" not in said and "nothing was saved" not in said
    assert "continuing" not in said


def test_a_study_that_continues_says_how_many_trials_it_has(search):
    search("--trials", "4")
    assert "continuing study s: 4 trials kept, 2 new" in search("--trials", "6").out
    assert "continuing study s: 6 trials kept, 0 new" in search("--trials", "6").out
    assert "continuing" not in search("--trials", "4", "--restart").out


def test_the_help_names_only_models_that_are_accepted():
    from assay.models.subject.data.datasets import DATASETS
    from assay.models.subject.registry import ENTRIES

    for kind in ("precision", "sensitivity"):
        said = "".join(assay("search", kind, "--help").out.split())
        assert "function" not in said.partition("Options:")[0]
        assert all(name in said for name, entry in ENTRIES.items() if entry.data in DATASETS)
