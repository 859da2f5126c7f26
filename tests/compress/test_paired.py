"""The paired bootstrap sees a difference where there is one, and none where there is none."""

import pytest
import torch

from assay.compress.evidence import CompressEvidence, Sizes
from assay.compress.items import packed, unpacked
from assay.compress.paired import difference

COUNT = 2000


def judged(right, seed):
    return CompressEvidence(seed=seed, right=packed(right), sizes=Sizes(1, 1, len(right)))


def models(shares, seed=0):
    """Models that are right on about so many of the same items."""
    hardness = torch.rand(COUNT, generator=torch.Generator().manual_seed(seed))
    return [judged(hardness < share, seed) for share in shares]


def test_items_survive_their_text():
    right = torch.rand(1001) < 0.5
    assert torch.equal(unpacked(packed(right), 1001), right)


def test_a_model_that_is_right_on_more_items_is_better():
    pairs = [models((0.95, 0.93), seed) for seed in range(3)]
    found = difference([a for a, _ in pairs], [b for _, b in pairs])
    assert found.low > 0 and not found.worse and found.seeds == 3
    assert found.points == pytest.approx(2, abs=0.5)
    turned = difference([b for _, b in pairs], [a for a, _ in pairs])
    assert turned.worse and turned.points == -found.points


def test_as_many_items_either_way_are_no_difference():
    right = torch.arange(COUNT) % 10 > 0
    one, other = judged(right, 0), judged(right.roll(1), 0)
    found = difference([one], [other])
    assert found.points == 0 and found.low < 0 < found.high


def test_seeds_that_disagree_widen_the_interval():
    """Over items alone each difference would be sure."""
    better, worse = models((0.95, 0.93), 0), models((0.93, 0.95), 1)
    found = difference([better[0], worse[0]], [better[1], worse[1]])
    assert found.low < -1 and found.high > 1


def test_without_a_seed_in_common_there_is_no_answer():
    assert difference(models((0.9,), 0), models((0.9,), 1)) is None
