"""A user's own functions are called as documented, and an error in their signature or batch has the user's own line."""

import pytest

torch = pytest.importorskip("torch")

from assay.errors import SourceError  # noqa: E402
from assay.models.subject import own  # noqa: E402
from assay.models.subject.registry import entry  # noqa: E402

MODEL = "import torch\ndef build(): return torch.nn.Linear(3, 2)\n"


def entry_of(write, text):
    return entry(f"{write('mine.py', text)}:build")


@pytest.mark.parametrize(
    ("text", "says", "expected"),
    [
        ("\n\ndef build(width):\n    pass\n", r"mine\.py:3: build\(width\) cannot be called without", "def build():"),
        ("def build(*, width):\n    pass\n", r"mine\.py:1: build\(\*, width\) cannot be called", "def build():"),
    ],
)
def test_a_model_with_other_parameters_is_refused_with_the_signature_that_is_expected(write, text, says, expected):
    with pytest.raises(SourceError, match=says) as refused:
        entry_of(write, text).build()
    assert expected in refused.value.fix and "own.py" not in str(refused.value)


def test_a_function_that_does_not_take_its_knobs_is_refused_with_their_names(write):
    file = write("mine.py", MODEL)
    with pytest.raises(SourceError, match=r"mine\.py:2: build\(\) cannot be called with depth alone") as refused:
        own.build(f"{file}:build", {"depth": "2"})
    assert "def build(depth):" in refused.value.fix


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("def example(): return torch.randn(4, 3)", r"mine\.py:3: example\(\) cannot be called with batch"),
        ("def example(batch, length): return 0", r"mine\.py:3: example\(batch, length\) cannot be called with batch"),
        ("def example(*, batch): return 0", r"mine\.py:3: example\(\*, batch\) cannot be called with batch"),
        ("example = torch.randn(4, 3)", r"mine\.py: example is a Tensor, not a function"),
    ],
)
def test_an_example_with_other_parameters_is_refused_with_the_signature_that_is_expected(write, function, says):
    with pytest.raises(SourceError, match=says) as refused:
        entry_of(write, f"{MODEL}{function}\n").example(16)
    assert "def example(batch):" in refused.value.fix and "own.py" not in str(refused.value)


@pytest.mark.parametrize(
    "made",
    [
        "torch.randn(4, 3)",
        "{'x': torch.randn(4, 3), 'mask': torch.ones(4, 1)}",
        "torch.randn(min(batch, 4), 3)",
    ],
)
def test_inputs_that_do_not_depend_on_the_batch_are_refused_at_the_line_of_the_function(write, made):
    found = entry_of(write, f"{MODEL}def example(batch):\n    return {made}\n")
    with pytest.raises(SourceError, match=r"mine\.py:3: example\(16\) returns the shapes of example\(8\), \(4, 3\)"):
        found.example(16)


@pytest.mark.parametrize(
    "made",
    [
        "torch.randn(batch, 3)",
        "(torch.randn(batch, 3), torch.ones(1))",
        "torch.randn(7, batch, 3)",  # the sequence first
        "torch.randn(batch * 5, 3)",  # packed
        "[[torch.randn(3)] * batch]",
        "{'n': batch}",
        "torch.randn({16: 5}[batch], 3)",  # another batch size is not possible
    ],
)
def test_the_batch_may_be_in_any_place_of_the_inputs(write, made):
    entry_of(write, f"{MODEL}def example(batch):\n    return {made}\n").example(16)


def test_inputs_of_a_fixed_size_may_be_run_at_that_size(write):
    found = entry_of(write, f"{MODEL}def example(batch):\n    return torch.randn(1, 3)\n")
    assert found.example(1)[0][0].shape == (1, 3)
    with pytest.raises(SourceError, match=r"example\(2\) returns the shapes of example\(1\)"):
        found.example(2)
