"""A user's own functions are called as documented, and an error in their signature has the user's own line."""

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
