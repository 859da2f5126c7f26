"""In a notebook: a bar moves while a verb runs, and a record draws itself."""

import re
import sys
import types
from dataclasses import replace

import pytest

import assay
from assay.record import Record, Status
from assay.report import html_table
from assay.watching import left, watched

RIGHT = Record("check", "gelu/torch", "dtype=fp32", Status.PASS, "agrees <everywhere>")
WRONG = replace(RIGHT, kernel="gelu/triton", status=Status.FAIL, reason="wrong")
NAMES = ["gelu/torch fp32", "gelu/triton fp32"]


@pytest.fixture
def cell(monkeypatch):
    """What a notebook's cell showed, in order. IPython itself is not needed for Assay, nor for its tests."""
    shown = []

    class Handle:
        def update(self, what):
            shown.append(what._repr_html_())

    def display(what, display_id):
        assert display_id is True
        shown.append(what._repr_html_())
        return Handle()

    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    notebook.display = types.ModuleType("IPython.display")
    notebook.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    return shown


def texts(shown):
    return [re.sub(r"<[^>]*>", "", text).strip() for text in shown]


def test_a_bar_moves_with_each_record_and_leaves_one_line(cell):
    assert list(watched("check", iter([RIGHT, WRONG]), NAMES)) == [RIGHT, WRONG]
    assert texts(cell) == [
        "check 0/2 0:00 gelu/torch fp32, gelu/triton fp32",
        "check 1/2 0:00 gelu/triton fp32",
        "check 2/2 0:00",
        "check: 1 pass, 1 fail in 0:00",
    ]
    values = [re.findall(r'value="(\d+)" max="2"', text) for text in cell]
    assert values == [[], ["1"], ["2"], []] and "<progress" not in cell[-1]


def test_a_reader_who_stops_early_leaves_no_bar(cell):
    records = watched("inspect", iter([RIGHT, WRONG]))
    next(records)
    records.close()
    assert texts(cell)[0] == "inspect 0 0:00" and texts(cell)[-1] == "inspect: 1 pass in 0:00"


def test_check_called_from_a_notebook_shows_it(cell):
    assert [str(r.status) for r in assay.check("gelu/torch", workload="n=5,dtype=fp32", keep=False)] == ["pass"]
    assert texts(cell)[0] == "check 0/1 0:00 gelu/torch fp32" and texts(cell)[-1].startswith("check: 1 pass in ")


@pytest.mark.parametrize("shell", [None, types.SimpleNamespace()], ids=["a script", "IPython in a terminal"])
def test_nothing_is_shown_elsewhere(cell, shell, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    assert list(watched("check", iter([RIGHT]), NAMES)) == [RIGHT] and not cell


def test_a_record_draws_itself():
    drawn = RIGHT._repr_html_()
    assert drawn == html_table([RIGHT]) and "agrees &lt;everywhere&gt;" in drawn and "gelu/torch" in drawn


def test_of_many_names_the_first_are_told_and_the_number_of_the_others():
    assert left([f"k{n}" for n in range(7)]) == "k0, k1, k2, k3 and 3 more" and left([]) == ""
