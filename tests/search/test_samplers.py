"""Samplers, goals and infeasible points, on a space of a hundred points that needs no model."""

import inspect
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

optuna = pytest.importorskip("optuna")

import search_child  # noqa: E402
import search_run  # noqa: E402
from assay.errors import UsageError  # noqa: E402
from assay.models.subject.knobs import Knob  # noqa: E402
from assay.search import samplers, space  # noqa: E402
from assay.search.goals import Goals  # noqa: E402
from assay.search.options import Precision  # noqa: E402
from assay.search.planning import precision  # noqa: E402


@pytest.fixture
def searched(tmp_path, monkeypatch):
    """Without other processes: these tests are not about them."""

    def run(values=10, **settings):
        monkeypatch.setenv("SEARCH_LOG", str(tmp_path / "log"))
        monkeypatch.setenv("SEARCH_VALUES", str(values))
        scheduler = search_run.Inline(search_child)
        return list(search_run.study(tmp_path / "studies.sqlite", scheduler=scheduler, **settings))

    return run


def trials(records, state):
    return [r for r in records if r.evidence["role"] == "trial" and r.evidence["state"] == state]


def test_a_grid_visits_every_point_once_and_prunes_those_that_cannot_be_built(searched):
    records = searched(sampler="grid", trials=100, values=4)
    done = [tuple(r.evidence["parameters"].values()) for r in trials(records, "finished")]
    pruned = trials(records, "pruned")
    every = set(itertools.product(search_child.TEN, search_child.TEN[:4]))
    assert sorted(done) == sorted(every - {("3", "3")})
    (cannot_be_built,) = pruned
    assert cannot_be_built.evidence["parameters"] == {"a": "3", "b": "3"}
    assert (str(cannot_be_built.status), cannot_be_built.reason) == ("skipped", "a 3 does not go with b 3")
    winner = records[-1].evidence
    assert (winner["role"], winner["bits"], winner["test"]) == ("winner", 880, 0.85)


@pytest.mark.parametrize("sampler", ["random", "tpe", "nsga2"])
def test_a_sampler_does_as_many_distinct_trials_as_asked_and_the_winner_is_allowed(searched, sampler):
    records = searched(sampler=sampler, trials=12)
    done = trials(records, "finished")
    assert len({space.key(r.evidence["parameters"]) for r in done}) == len(done) == 12
    winner = records[-1].evidence
    allowed = [r.evidence["bits"] for r in done if r.evidence["allowed"]]
    assert winner["bits"] == min(allowed)
    assert all(r.evidence["accuracy"] >= 0.9 - 0.005 for r in done if r.evidence["allowed"])


def test_several_goals_give_a_front(searched):
    records = searched(sampler="random", trials=15, goals=("accuracy", "bits"), points=None)
    done = [r.evidence for r in trials(records, "finished")]
    front = [r.evidence for r in records if r.evidence["role"] == "winner"]
    for one in front:
        better = [e for e in done if e["accuracy"] >= one["accuracy"] and e["bits"] <= one["bits"]]
        assert all((e["accuracy"], e["bits"]) == (one["accuracy"], one["bits"]) for e in better)
    assert {e["accuracy"] for e in front} == {e["accuracy"] for e in done}


@pytest.mark.parametrize("name", ["TPESampler", "NSGAIISampler", "RandomSampler", "GridSampler"])
def test_no_argument_of_a_sampler_is_left_to_optuna(name, monkeypatch):
    """A new version with a new argument must be looked at before it is used."""
    known = inspect.signature(getattr(optuna.samplers, name).__init__).parameters
    given: dict[str, object] = {}
    short = {"TPESampler": "tpe", "NSGAIISampler": "nsga2", "RandomSampler": "random", "GridSampler": "grid"}[name]
    real = getattr(optuna.samplers, name)

    class Watched(real):
        def __init__(self, *args, **arguments):
            given.update(arguments)
            super().__init__(*args, **arguments)

    monkeypatch.setattr(optuna.samplers, name, Watched)
    samplers.sampler(short, 0, search_child.SPACE, lambda trial: (0.0,))
    assert set(known) - {"self", "search_space", "consider_prior"} == set(given)


def test_a_grid_that_is_too_large_is_refused_before_anything_is_written(tmp_path):
    wide = {f"k{n}": Knob(search_child.TEN, "0") for n in range(9)}
    with pytest.raises(UsageError, match="more than 20,000 points"):
        samplers.sampler("grid", 0, wide, None)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"sampler": "anneal"}, "no sampler called 'anneal'"),
        ({"trials": 0}, "0 trials"),
        ({"workers": 0}, "0 workers"),
        ({"goals": ("speed",)}, "no goal called 'speed'"),
        ({"goals": ()}, "a search needs a goal"),
        ({"goals": ("latency",)}, "latency cannot be measured"),
        ({"points": -1.0}, "points below the control"),
        ({"widths": (1,)}, "a width of 1"),
        ({"widths": ()}, "no widths"),
        ({"formats": ("fixed:8:4",)}, "no width to be searched"),
        ({"formats": ("int",), "offsets": (0, 1)}, "no fraction to be searched"),
        ({"of": ("biases",)}, "cannot be searched"),
        ({"seeds": ()}, "nothing to do"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_do(settings, what):
    with pytest.raises(UsageError, match=what) as refused:
        precision("mnist-cnn", Precision(**settings))
    assert refused.value.fix


# storages


def test_a_storage_that_is_no_database_or_not_there_is_named(tmp_path, searched):
    (tmp_path / "studies.sqlite").write_text("these are no studies, and never were\n" * 100)
    with pytest.raises(UsageError, match="is damaged, or no database"):
        searched(trials=1)
    with pytest.raises(UsageError, match="there is no folder"):
        next(search_run.study(tmp_path / "nowhere" / "s.sqlite"))
    with pytest.raises(UsageError, match="cannot be used"):
        next(search_run.study("postgresql://nobody@127.0.0.1:9/nothing"))
    with pytest.raises(UsageError, match="not kept in mysql"):
        next(search_run.study("mysql://nobody@127.0.0.1/nothing"))


def test_a_study_of_other_settings_or_of_somebody_else_is_refused(tmp_path, searched):
    searched(trials=2, sampler="random")
    with pytest.raises(UsageError, match=r"made with other settings \(points\)"):
        searched(trials=2, sampler="random", points=1.0)
    url = f"sqlite:///{tmp_path / 'theirs.sqlite'}"
    theirs = optuna.create_study(storage=url, study_name="s")
    theirs.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(UsageError, match="none of Assay's, or damaged"):
        next(search_run.study(tmp_path / "theirs.sqlite"))
    again = searched(trials=2, sampler="random", points=1.0, restart=True)
    assert again[-1].evidence["points"] == 1.0


# spaces and goals

names = st.sampled_from("abcde")
values = st.lists(st.sampled_from("12345678"), min_size=1, max_size=4, unique=True).map(tuple)


@st.composite
def spaces(draw):
    """Knobs, some of which exist only beside a value of an earlier one."""
    made: dict[str, Knob] = {}
    for name in draw(st.lists(names, min_size=1, max_size=5, unique=True)):
        own = draw(values)
        where = {}
        if made and draw(st.booleans()):
            other = draw(st.sampled_from(sorted(made)))
            where = {other: (draw(st.sampled_from(made[other].values)),)}
        made[name] = Knob(own, draw(st.sampled_from(own)), where)
    return made


@settings(max_examples=40)
@given(spaces(), st.randoms(use_true_random=False))
def test_every_way_to_make_a_point_gives_a_point_of_the_space(made, rng):
    knobs = space.ordered(made)
    every = [space.key(p) for p in space.points(knobs)]
    assert len(set(every)) == len(every) == space.size(knobs, len(every))
    assert space.size(knobs, len(every) - 1) is None
    drawn = space.drawn(knobs, rng)
    beside = space.beside(drawn, knobs, rng, steps=2)
    some = {name: knobs[name].values[-1] for name in list(knobs)[-1:]}
    completed = space.completed(some, knobs)
    assert some.items() <= completed.items()
    for point in (drawn, beside, space.defaults(knobs), completed):
        assert space.key(point) in every
        assert space.of_places(space.places(point, knobs), knobs) == point
    assert space.read(space.plain(knobs)) == knobs


def test_knobs_that_depend_on_each_other_are_refused():
    with pytest.raises(UsageError, match="depend on others"):
        space.ordered({"a": Knob(("1",), "1", {"b": ("1",)}), "b": Knob(("1",), "1", {"a": ("1",)})})


results = st.fixed_dictionaries({"accuracy": st.integers(0, 20).map(lambda n: n / 20), "bits": st.integers(1, 9)})


@given(st.lists(results, min_size=1, max_size=12), st.integers(0, 10))
def test_a_winner_is_allowed_and_nothing_allowed_is_better(found, points):
    trials = list(enumerate(found))
    control = {"accuracy": 0.9}
    goals = Goals.of(("bits",), float(10 * points))
    chosen = goals.chosen(trials, control)
    allowed = [(n, r) for n, r in trials if r["accuracy"] * 100 >= 90 - 10 * points - 1e-6]
    if not allowed:
        assert chosen == []
        return
    best = min(allowed, key=lambda one: (one[1]["bits"], -one[1]["accuracy"], one[0]))
    assert chosen == [best[0]]
    front = Goals.of(("accuracy", "bits"), None).chosen(trials, control)
    for number, result in trials:
        beaten = any(found[f]["accuracy"] >= result["accuracy"] and found[f]["bits"] <= result["bits"] for f in front)
        assert beaten or number in front
