"""The study of tuning: a space that was measured whole, and strategies that are replayed over it. The spaces here are
synthetic, but for one that is really measured."""

import importlib.util
import json
import random
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.tune.space import Space, key
from assay.tune.strategies.surrogate import Surrogate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("tuning_study", ROOT / "tools" / "tuning_study.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["tuning_study"] = module  # its dataclasses look there for their types
    spec.loader.exec_module(module)
    yield module
    del sys.modules["tuning_study"]


def synthetic(tool, seed=0, noise=0.002):
    """SYNTHETIC: 240 configurations whose times have a slope, an interaction and jitter; some are pruned or fail."""
    rng = random.Random(seed)
    values = {
        "BLOCK": [256, 512, 1024, 2048, 4096],
        "warps": [1, 2, 4, 8],
        "hint": ["", "cs", "cg"],
        "stages": [1, 2, 3, 4],
    }
    points = []
    for parameters in Space(values).configurations:
        places = {n: v.index(parameters[n]) for n, v in values.items()}
        cost = (
            0.06 * abs(places["BLOCK"] - 2) + 0.04 * abs(places["warps"] - places["BLOCK"] / 2) + 0.02 * places["hint"]
        )
        cost += 0.01 * (places["stages"] != 1) + rng.uniform(0, 0.004)
        rounds = [1e-5 * (1 + cost) * (1 + rng.gauss(0, noise)) for _ in range(8)]
        point = tool.Point(parameters, 1e-5 * (1 + cost * rng.uniform(0.5, 1.5)), rounds)
        if parameters["BLOCK"] == 256 and parameters["warps"] == 8:
            point = tool.Point(parameters, point.estimate, [], "it cannot be launched", True)
        elif parameters["BLOCK"] == 4096 and parameters["hint"] == "cg":
            point = tool.Point(parameters, point.estimate, [], "values: it is wrong")
        points.append(point)
    points.sort(key=lambda p: p.estimate)
    default = {"BLOCK": 512, "warps": 4, "hint": "", "stages": 1}
    return tool.Study("synthetic/triton", "n=1,dtype=fp32", "SYNTHETIC", values, default, points)


def test_the_guided_strategy_is_replayed_and_finds_the_best_where_a_random_one_does_not(tool):
    study = synthetic(tool)
    assert len(study.points) == 240 and study.most == 24
    guided = [tool.replayed(study, "guided", seed) for seed in range(5)]
    random_ = [tool.replayed(study, "random", seed) for seed in range(5)]
    assert max(guided) <= 0.01 and sum(guided) < sum(random_)
    assert tool.replayed(study, "random", 3) == random_[3], "a replay with the same seed is the same"


def test_a_replay_measures_no_more_than_a_tenth_and_only_what_was_timed(tool, monkeypatch):
    study, asked = synthetic(tool), []
    drawn = tool.drawn
    monkeypatch.setattr(tool, "drawn", lambda s, p, rounds, rng: asked.append((p, rounds)) or drawn(s, p, rounds, rng))
    tool.replayed(study, "guided", 1)
    screened = [p for p, rounds in asked if rounds == tool.ROUNDS]
    assert len(screened) <= 24 and all(p.rounds for p, _ in asked)
    assert {rounds for _, rounds in asked} == {tool.ROUNDS, 2 * tool.ROUNDS}


scalars = st.one_of(st.booleans(), st.integers(-9, 10**6), st.text(max_size=4))
lists = st.lists(scalars, min_size=2, max_size=4, unique_by=repr)
times = st.lists(st.floats(1e-7, 1.0), max_size=6)


@given(
    st.dictionaries(st.text(min_size=1, max_size=4), lists, max_size=3),
    st.lists(st.tuples(times, st.none() | st.floats(1e-7, 1.0), st.text(max_size=9), st.booleans()), max_size=5),
)
@settings(max_examples=60)
def test_a_study_is_read_as_it_was_written(tool, tmp_path_factory, values, drawn):
    first = {n: v[0] for n, v in values.items()}
    points = [tool.Point(first, estimate, rounds, why, pruned) for rounds, estimate, why, pruned in drawn]
    study = tool.Study("gelu/cuda", "n=8,dtype=fp32", "SYNTHETIC", values, first, points, {"commit": "abc"}, 1.5)
    file = tmp_path_factory.mktemp("study") / "tuning.json"
    file.write_text(json.dumps(asdict(study)))
    again = tool.read(file)
    assert again == study and [key(p.parameters) for p in again.points] == [key(first)] * len(points)


def test_the_table_counts_the_replays_and_stands_between_its_marks(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "REPLAYED", ("random",))
    monkeypatch.setattr(tool, "REPEATS", 3)
    file = tmp_path / "tuning_synthetic_triton.json"
    file.write_text(json.dumps(asdict(synthetic(tool))))
    page = f"before\n{tool.BEGIN}\nold\n{tool.END}\nafter\n"
    text = tool.page(page, [file])
    assert text.startswith(f"before\n{tool.BEGIN}\n") and text.endswith(f"{tool.END}\nafter\n") and "old" not in text
    row = next(line for line in text.splitlines() if line.startswith("| synthetic/triton "))
    assert "| 240 | 212 |" in row and "| random | 24 |" in row and row.count(" of 3 ") == 2
    assert tool.page(text, [file]) == text
    assert "No space" in tool.page(page, [])


def test_the_table_in_the_docs_is_what_the_records_give(tool):
    page = (ROOT / "docs" / "tune.md").read_text()
    assert tool.BEGIN in page and tool.END in page
    files = sorted((ROOT / "results").glob("*/tuning_*.json"))
    for study in map(tool.read, files):  # replaying all of them takes a minute: `tools/tuning_study.py --check`
        assert f"| {study.kernel} | {study.workload} | {len(study.points)} | {len(study.timed)} |" in page


MINE = """
import torch
from assay import kernel

@kernel("gelu", backend="torch", tune={"times": [1, 6], "wrong": [False, True]})
def gelu(x, *, out, times=6, wrong=False):
    for _ in range(times):
        torch.ops.aten.gelu.out(x, out=out)
    if wrong:
        out[:7] = 0
"""


def test_a_whole_space_is_measured_and_a_wrong_configuration_has_no_time(tool, write, monkeypatch):
    monkeypatch.setenv("ASSAY_STORE", "none")
    monkeypatch.setattr(tool, "CLOSE", 5)
    study = tool.measured(str(write("mine.py", MINE)), "n=40000,dtype=fp32", 60.0)
    of = {(p.parameters["times"], p.parameters["wrong"]): p for p in study.points}
    assert len(of) == 4 and not of[1, True].rounds and "values" in of[1, True].why
    assert of[1, False].seconds == study.best and of[6, False].seconds > 2 * study.best
    assert len(of[1, False].rounds) >= tool.CLOSE > tool.SCREENED
    assert study.default == {"times": 6, "wrong": False}


@given(st.data())
@settings(max_examples=40)
def test_the_model_of_the_times_is_sure_of_what_it_saw_and_less_of_the_rest(data):
    values = data.draw(st.dictionaries(st.sampled_from("abc"), lists, min_size=1))
    space = Space(values)
    every = space.configurations
    estimates = {key(c): data.draw(st.floats(1e-6, 1e-3)) for c in every} if data.draw(st.booleans()) else {}
    chosen = data.draw(st.lists(st.sampled_from(every), min_size=2, unique_by=key))
    seen = {key(c): data.draw(st.floats(-12, -6)) for c in chosen}
    model = Surrogate(space, every, estimates)
    expected = model.expected(seen)
    assert expected.keys() == {key(c) for c in every}
    for k, (mean, deviation) in expected.items():
        assert -40 < mean < 30 and 0 < deviation < 20
        if k in seen:
            assert deviation <= 0.0031
    waiting = [k for k in expected if k not in seen][:2]
    later = model.expected(seen, waiting)
    assert all(later[k][1] <= 0.0031 and abs(later[k][0] - expected[k][0]) < 0.01 for k in waiting)
