"""Text that is computed once for each installation."""

import itertools

import pytest

from assay import cached


@pytest.fixture
def compute():
    numbers = itertools.count(1)
    return lambda: f"µ {next(numbers)}\n"


def test_text_is_computed_once_for_each_identity(tmp_path, monkeypatch, compute):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    assert [cached.text("a", identity, compute) for identity in ("x", "y", "x", "y")] == ["µ 1\n", "µ 2\n"] * 2
    assert cached.text("b", "x", compute) == "µ 3\n"
    assert all(file.suffix == ".txt" for file in tmp_path.rglob("*") if file.is_file())


def test_what_cannot_be_kept_or_read_is_computed(tmp_path, monkeypatch, compute):
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setenv("ASSAY_CACHE", str(file))
    assert [cached.text("a", "x", compute) for _ in range(2)] == ["µ 1\n", "µ 2\n"]
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "damaged"))
    cached.text("a", "x", compute)
    (kept,) = (tmp_path / "damaged").rglob("*.txt")
    kept.write_bytes(b"\xff\xfe")
    assert cached.text("a", "x", compute) == "µ 4\n" == cached.text("a", "x", compute)
