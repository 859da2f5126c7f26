"""Exactly the share that was asked for is dropped, by the rule that was asked for."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.compress.pruning import dropped, masks
from assay.errors import UsageError

SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=3)


def weights(sizes, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return {f"layer{i}": torch.randn(n, 3, generator=rng) for i, n in enumerate(sizes)}


@given(SIZES, st.floats(0, 99.9), st.sampled_from(["l1", "random"]))
def test_each_layer_loses_the_share_that_was_asked_for(sizes, sparsity, method):
    given_ = weights(sizes)
    for name, mask in masks(given_, sparsity, method, "local", 0).items():
        assert mask.shape == given_[name].shape
        assert int((~mask).sum()) == round(mask.numel() * sparsity / 100)


@given(SIZES, st.floats(0, 99.9), st.sampled_from(["l1", "random"]))
def test_all_layers_together_lose_it_where_the_scope_is_global(sizes, sparsity, method):
    made = masks(weights(sizes), sparsity, method, "global", 0).values()
    assert sum(int((~m).sum()) for m in made) == round(sum(m.numel() for m in made) * sparsity / 100)


@given(SIZES, st.floats(1, 99), st.sampled_from(["local", "global"]))
def test_l1_keeps_no_weight_smaller_than_one_it_drops(sizes, sparsity, scope):
    given_ = weights(sizes)
    made = masks(given_, sparsity, "l1", scope, 0)
    groups = [list(given_)] if scope == "global" else [[name] for name in given_]
    for names in groups:
        kept = torch.cat([given_[n][made[n]].abs() for n in names])
        gone = torch.cat([given_[n][~made[n]].abs() for n in names])
        assert not len(kept) or not len(gone) or gone.max() <= kept.min()


def test_equal_weights_are_dropped_by_position_and_not_all_at_once():
    mask = masks({"a": torch.ones(10)}, 30, "l1", "local", 0)["a"]
    assert mask.tolist() == [False] * 3 + [True] * 7


def test_random_depends_on_the_seed_alone():
    one, again, other = (masks(weights([40]), 50, "random", "local", seed)["layer0"] for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("sparsity", [-1, 100, 120, float("nan")])
def test_a_sparsity_that_is_none_is_refused(sparsity):
    with pytest.raises(UsageError, match="a sparsity of"):
        masks(weights([3]), sparsity, "l1", "local", 0)


@given(st.integers(1, 6), st.integers(1, 50), st.floats(0, 99))
def test_activations_of_each_item_are_dropped_by_themselves(batch, size, sparsity):
    x = torch.randn(batch, size, generator=torch.Generator().manual_seed(batch))
    rng = torch.Generator()
    together = dropped(x, sparsity, "l1", rng)
    apart = torch.cat([dropped(row[None], sparsity, "l1", rng) for row in x])
    assert torch.equal(together, apart)
    assert ((together == 0).sum(1) == round(size * sparsity / 100)).all()
    assert ((together == 0) | (together == x)).all()


def test_random_activations_are_dropped_at_about_that_rate():
    x = torch.ones(4, 10_000)
    share = float((dropped(x, 30, "random", torch.Generator().manual_seed(0)) == 0).float().mean())
    assert 0.29 < share < 0.31  # a deviation is 0.0023
