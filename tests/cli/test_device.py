"""`--device` chooses what a run and everything it starts sees, before the driver is asked."""

import os

import pytest

from assay import host
from assay.errors import UsageError
from command import assay


@pytest.fixture
def visible(monkeypatch):
    """Set the variable, and say how many GPUs there are."""

    def put(value, count):
        monkeypatch.setattr(host, "gpus", lambda: count)
        monkeypatch.setattr(host.gpu, "cache_clear", lambda: None, raising=False)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value or "")
        if value is None:
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES")

    return put


@pytest.mark.parametrize(
    ("before", "count", "asked", "after"),
    [
        (None, 4, "cuda:2", "2"),
        ("3,5", 8, "cuda:1", "5"),
        ("GPU-a1,GPU-b2", 2, "cuda:1", "GPU-b2"),
        ("3,5", 8, "cuda", "3,5"),
        (None, 4, "cuda", None),
        (None, 4, "", None),
        ("1", 4, "cpu", "-1"),
    ],
)
def test_a_gpu_is_counted_among_the_visible_ones(visible, before, count, asked, after):
    visible(before, count)
    assert host.use(asked) == asked.partition(":")[0]
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == after


@pytest.mark.parametrize(
    ("before", "count", "asked", "says", "fix"),
    [
        (None, 0, "cuda", "there is no GPU here", "--device cpu"),
        ("-1", 4, "cuda:0", "there is no GPU here", "--device cpu"),
        ("3,5", 8, "cuda:2", "there is no cuda:2 here", "cuda:0 or cuda:1"),
        (None, 2, "cuda:x", "no device called 'cuda:x'", "cuda:1"),
        (None, 2, "cpu:1", "no device called 'cpu:1'", "cuda:1"),
        (None, 2, "gpu", "no device called 'gpu'", "cuda:1"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(visible, before, count, asked, says, fix):
    visible(before, count)
    with pytest.raises(UsageError, match=says) as refused:
        host.use(asked)
    assert fix in refused.value.fix and os.environ.get("CUDA_VISIBLE_DEVICES") == before


@pytest.mark.parametrize("verb", ["check gelu/torch", "bench gelu/torch", "run gelu/torch", "selftest", "machine"])
def test_every_verb_that_runs_takes_it(verb, visible):
    visible(None, 0)
    done = assay(*verb.split(), "--device", "cuda:7")
    assert done.code == 2 and "no GPU here" in done.said
