"""A command that prints nothing until its end says what it does on standard error, where no terminal shows a bar."""

import time

import pytest

from assay.cli import lines
from assay.cli.bar import progress


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(lines, "EVERY", 0.05)


def test_the_first_activity_is_printed_at_once_and_then_what_goes_on(capsys):
    with progress(24, "infer mnist-cnn", False, late=True) as tick:
        tick("torch: batch 1", 0)
        assert capsys.readouterr().err == "infer mnist-cnn 0/24: torch: batch 1\n"
        tick("soon over", 1)
        tick("torch: batch 16", 3)
        time.sleep(0.5)
        tick("torch: batch 16", 3)
    assert capsys.readouterr().err == "infer mnist-cnn 3/24: torch: batch 16\n"


def test_nothing_is_printed_for_a_document_or_beside_records(capsys):
    for quiet, late in ((True, True), (False, False)):
        with progress(None, "infer", quiet, late=late) as tick:
            tick("planning", 0)
            time.sleep(0.2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_a_study_of_a_model_prints_its_lines_to_standard_error_alone(assay, write):
    file = write(
        "mine.py",
        "import torch\ndef build(): return torch.nn.Linear(3, 2)\ndef example(batch): return torch.randn(batch, 3)\n",
    )
    words = f"{file}:build --variant torch --batch 2 --arm eager --budget 0.01 --rounds 6 --device cpu"
    done = assay("model", "infer", *words.split())
    assert done.returncode == 0, done.stderr
    assert ": building the model\n" in done.stderr and ": building" not in done.stdout
    assert "torch   eager" in done.stdout and "torch   eager" not in done.stderr
