"""Arms in turn, and when the device is waited for."""

import pytest
import torch

from assay.models.measure import Arm, WaitedClock, in_turn
from assay.worker.stopwatch import HostClock


def test_every_arm_is_first_equally_often():
    seen = []
    turns = in_turn([Arm(n, lambda n=n: seen.append(n)) for n in "abc"], HostClock(), rounds=9, budget=60, samples=1)
    assert {len(rounds) for rounds in turns.samples.values()} == {9}
    order = [n for i, n in enumerate(seen) if not i or seen[i - 1] != n][3:]  # the first three are guesses
    assert order[:6] == ["a", "b", "c", "b", "c", "a"]


@pytest.mark.parametrize(("each", "order"), [(False, "w012w"), (True, "w0w1w2w")])
def test_the_device_is_waited_for_once_or_after_each_call(monkeypatch, each, order):
    seen = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: seen.append("w"))
    clock = WaitedClock(each)
    clock.sample(lambda i: seen.append(str(i)), 0, 3)
    assert "".join(seen) == order and ("every call" in clock.method) == each
