"""The default is kept unless another is faster by compare's rule, and ties are named."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.record import Record, Status
from assay.tune.choosing import FINALISTS, chosen, considered, described, finalists
from assay.tune.evidence import Choice
from assay.tune.space import key

A, B, C = {"BLOCK": 1}, {"BLOCK": 2}, {"BLOCK": 4}
ALL = {key(c): c for c in (A, B, C)}


def timed(median, wobble=0.001, rounds=10, status=Status.PASS, **evidence):
    """A record of bench: rounds that spread evenly around a median."""
    samples = [[median * (1 + wobble * (i - rounds / 2) / rounds)] * 3 for i in range(rounds)]
    return Record("bench", "gelu/torch", "n=1", status, "", evidence=evidence, median=median, samples=samples)


def test_the_fastest_wins_and_those_that_the_rule_cannot_tell_from_it_are_named():
    winner = chosen({key(A): timed(10e-6), key(B): timed(10.02e-6), key(C): timed(12e-6)}, ALL, key(C))
    assert winner.configuration == A and winner.ties == [B]
    assert [r.verdict for r in winner.ranking] == ["", "SAME", "SLOWER"]
    assert winner.gain == pytest.approx(1.2, rel=1e-3) and winner.gain_verdict == "FASTER"


@pytest.mark.parametrize(
    ("time", "wobble"), [(10.02e-6, 0.001), (10.07e-6, 0.001), (10.5e-6, 0.5)], ids=["same", "nearly", "ambiguous"]
)
def test_a_default_that_nothing_is_faster_than_is_kept(time, wobble):
    winner = chosen({key(A): timed(10e-6), key(B): timed(time, wobble=wobble)}, ALL, key(B))
    assert winner.configuration == B and winner.ties == [A] and winner.gain is None
    assert [r.verdict for r in winner.ranking] == ["", "AMBIGUOUS" if wobble > 0.1 else "SAME"]


def test_a_steady_configuration_that_is_faster_than_the_default_wins_over_an_unsteady_one_that_may_be():
    noisy, steady, default = timed(9e-6, wobble=0.9), timed(10e-6), timed(10.5e-6)
    winner = chosen({key(A): noisy, key(B): steady, key(C): default}, ALL, key(C))
    assert winner.configuration == B and winner.ties == [A] and winner.gain_verdict == "FASTER"


def test_without_a_time_of_the_default_the_fastest_wins():
    winner = chosen({key(A): timed(10e-6), key(B): timed(10.02e-6)}, ALL, key(C))
    assert winner.configuration == A and winner.ties == [B] and winner.gain is None


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (
            Choice(B, 1e-5, ties=[A], default=B),
            "2 configurations are tied: BLOCK=2; BLOCK=1; recommended: BLOCK=2, 10.00 µs, the default, because none is "
            "faster, ",
        ),
        (
            Choice(A, 1e-5, ties=[B], default=C, gain=1.25, gain_verdict="FASTER"),
            "2 configurations are tied: BLOCK=1; BLOCK=2; recommended: BLOCK=1, 10.00 µs, the fastest of them that is "
            "faster than the default, 1.25× the default's speed (FASTER), ",
        ),
        (
            Choice(A, 1e-5, ties=[B]),
            "2 configurations are tied: BLOCK=1; BLOCK=2; recommended: BLOCK=1, 10.00 µs, the fastest of them, ",
        ),
        (
            Choice(A, 1e-5, default=C, gain=1.25, gain_verdict="FASTER"),
            "the best is BLOCK=1, 10.00 µs, 1.25× the default's speed (FASTER), ",
        ),
        (Choice(A, 1e-5, default=A), "the best is BLOCK=1, 10.00 µs, the default, "),
    ],
)
def test_tied_configurations_are_named_and_the_reason_for_the_recommended_one_is_given(choice, text):
    assert described(choice) == f"{text}0 of 0 configurations measured ()"


def test_a_wrong_configuration_never_wins_however_fast_it_is():
    winner = chosen({key(A): timed(7e-6, status=Status.FAIL), key(B): timed(10e-6)}, ALL, key(B))
    assert winner.configuration == B and not winner.ties
    assert chosen({key(A): timed(7e-6, status=Status.FAIL)}, ALL, key(B)) is None


def test_the_time_that_counts_is_cold_and_on_the_device_not_that_of_a_call_from_python():
    """A tuner that times single calls takes the configuration that starts quickest."""
    lean = timed(20e-6, call={"median": 25e-6, "interval": [25e-6, 25e-6]})
    heavy = timed(10e-6, call={"median": 300e-6, "interval": [300e-6, 300e-6]})
    assert chosen({key(A): lean, key(B): heavy}, ALL, key(A)).configuration == B


@given(st.dictionaries(st.integers(0, 30), st.floats(1e-6, 1e-3), min_size=1), st.floats(0, 0.4), st.integers(0, 30))
def test_finalists_are_few_and_hold_the_best_and_the_default(times, spread, default):
    by_key = {key({"BLOCK": n}): t for n, t in times.items()}
    last = finalists(by_key, dict.fromkeys(by_key, spread), key({"BLOCK": default}))
    assert last[0] == min(by_key, key=by_key.get) and len(last) == len(set(last)) <= FINALISTS + 1
    assert (key({"BLOCK": default}) in last) == (default in times) or len(last) <= FINALISTS
    far = [k for k in last[:-1] if by_key[k] * (1 - spread) > by_key[last[0]] * (1 + max(0.05, spread)) * (1 + 1e-9)]
    assert not far


def test_a_choice_is_made_again_only_if_something_changed():
    one = {key(A): 1e-6, key(B): 2e-6}
    assert considered(one) == considered(dict(reversed(one.items()))) != considered({**one, key(C): math.pi})
