"""A sensitivity pass: points of the space itself, each once, that lead to few bits."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.models.subject.knobs import Knob
from assay.search import space
from assay.search.guide import Guide

WIDTHS = ("2", "3", "4", "5", "6", "7", "8")
CONTROL = {"accuracy": 0.98, "bits": 32 * 10_000}


class Model:
    """Layers that lose points on their own, a quarter with each bit; together they lose some share of the sum."""

    def __init__(self, sizes, losses, together=1.0):
        self.sizes, self.losses, self.together = sizes, losses, together
        self.layers = [f"layer{n}.weight" for n in range(len(sizes))]
        self.knobs = {name: Knob(WIDTHS, "8") for name in (*self.layers, "layer0.input")}

    def judged(self, point):
        widths = [int(point[name]) for name in self.layers]
        lost = [loss / 4 ** (w - 2) if w < 8 else 0.0 for loss, w in zip(self.losses, widths, strict=True)]
        whole = sum(lost) * self.together if sum(loss > 0 for loss in lost) > 1 else sum(lost)
        bits = sum(size * w for size, w in zip(self.sizes, widths, strict=True))
        return {"accuracy": CONTROL["accuracy"] - whole / 100, "bits": bits}

    def pass_(self, points):
        """All that the guide asks for, answered in its order."""
        done = {}
        while wanted := Guide(self.knobs, points, CONTROL, done).wanted():
            assert space.key(wanted[0]) not in done
            assert set(wanted[0]) == set(self.knobs)
            assert all(value in WIDTHS for value in wanted[0].values())
            done[space.key(wanted[0])] = self.judged(wanted[0])
        return done

    def best(self, points):
        every = itertools.product(WIDTHS, repeat=len(self.layers))
        found = (self.judged(dict(zip(self.layers, widths, strict=True))) for widths in every)
        return min(judged["bits"] for judged in found if allowed(judged, points))


def allowed(judged, points):
    return 100 * (CONTROL["accuracy"] - judged["accuracy"]) <= points + 1e-9


sizes = st.lists(st.integers(10, 10_000), min_size=1, max_size=3)


@settings(max_examples=40)
@given(sizes, st.data(), st.sampled_from([0.25, 0.5, 2.0]))
def test_where_losses_add_up_the_pass_finds_nearly_the_fewest_bits(numbers, data, points):
    losses = data.draw(st.lists(st.floats(0, 20), min_size=len(numbers), max_size=len(numbers)))
    model = Model(numbers, losses)
    done = model.pass_(points)
    found = min(judged["bits"] for judged in done.values() if allowed(judged, points))
    assert found <= model.best(points) + max(numbers)  # one step of one layer at most


@pytest.mark.parametrize("together", [0.5, 1.0, 1.6])
def test_twenty_trials_are_enough_for_four_layers_whatever_they_lose_together(together):
    model = Model([400, 4600, 20_000, 1300], [9.0, 2.1, 1.2, 3.0], together)
    first = itertools.islice(model.pass_(0.5).values(), 20)
    assert min(judged["bits"] for judged in first if allowed(judged, 0.5)) <= 1.02 * model.best(0.5)


def test_a_pass_whose_widest_point_is_not_allowed_has_nothing_to_suggest():
    model = Model([100], [1.0])
    widest = space.defaults(model.knobs)
    assert Guide(model.knobs, 0.5, CONTROL, {}).wanted() == [widest]
    done = {space.key(widest): {"accuracy": 0.9, "bits": 800}}
    assert Guide(model.knobs, 0.5, CONTROL, done).wanted() == []


def test_a_point_that_failed_counts_as_lost():
    model = Model([100, 1000], [0.1, 0.1])
    widest = space.defaults(model.knobs)
    done = {space.key(point): model.judged(point) for point in (widest, widest | {"layer0.weight": "2"})}
    done[space.key(widest | {"layer1.weight": "2"})] = None
    (suggested,) = Guide(model.knobs, 0.5, CONTROL, done).wanted()
    assert suggested["layer0.weight"] == "2" and int(suggested["layer1.weight"]) >= 7
