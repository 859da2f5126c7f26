"""The screen that a person sees: a bar that says what is done and makes room for records, and tables of which nothing
is cut, at any width and in a pipe."""

import re
import sys

import pytest

from pseudo_terminal import watch

BAR = re.compile(r"\d:\d\d:\d\d")
"""What only the bar shows: the time that has passed."""
VERB = """
import sys, time
from assay.cli import screen
from assay.record import Record, Status

names = [f"gelu/triton:variant_{n}" for n in range(4)]

def records():
    for name in names:
        time.sleep(0.3)
        yield Record("check", name, "n=5,dtype=fp32", Status.PASS, "every workload agrees with the oracle " * 3)

def show(record):
    screen.console().print(f"{record.kernel}  {screen.status_text(record.status)}  {record.reason}")
    print("a warning of a library", file=sys.stderr)

kept, _ = screen.collect(records(), names, "check", False, show)
screen.console().print(screen.summary(kept))
"""
"""A verb without kernels: four records, and a line on standard error with each."""


def without_bar(line):
    return " ".join(re.sub(r"[━╸╺]", "", line).split())


def bars(screens):
    return [line for _, lines in screens for line in lines if BAR.search(line)]


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "told"), [(30, None), (80, None), (200, None), (80, "50"), (80, "120")])
def test_no_line_of_the_screen_holds_a_record_and_the_bar(columns, told):
    seen = watch("-c", VERB, columns=columns, env={"COLUMNS": told} if told else {})
    assert seen.code == 0, seen.text
    shown = bars(seen.screens)
    assert shown and all(line.startswith("check ") for line in shown), shown
    assert not [line for line in shown if "pass" in line or "oracle" in line or "warning" in line]
    for _, lines in seen.screens:  # the bar is one line, below everything else
        at = [i for i, line in enumerate(lines) if BAR.search(line)]
        assert len(at) <= 1 and not any(lines[i + 1 :] != [""] * len(lines[i + 1 :]) for i in at), lines
    assert not BAR.search(seen.text) and "0/0" not in seen.text and "━" not in seen.text
    words = " ".join(seen.text.split())
    assert all(f"gelu/triton:variant_{n} ✓ pass" in words for n in range(4)), seen.text
    assert words.count("a warning of a library") == 4 and words.endswith("4 pass")


def test_the_bar_says_what_it_does_from_its_first_moment():
    seen = watch("-c", VERB, columns=100)
    first, *rest = bars(seen.screens)
    assert "gelu/triton:variant_0, " in first and " 0/4 " in first
    assert any(without_bar(line).endswith("gelu/triton:variant_3") and "3/4" in line for line in rest), rest


@pytest.mark.parametrize(("where", "bar"), [("| tee log", False), ("> log", True)])
def test_what_is_piped_may_come_out_on_the_screen_so_there_is_no_bar_then(where, bar, tmp_path):
    """`tee` would print a record onto a bar on standard error. A file is not on the screen."""
    (tmp_path / "verb.py").write_text(VERB)
    seen = watch(shell=f"{sys.executable} verb.py {where}", columns=80, cwd=tmp_path)
    assert bool(bars(seen.screens)) is bar and not BAR.search(seen.text)
    log = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[0] for line in log] == [*(f"gelu/triton:variant_{n}" for n in range(4)), "4"]
    assert all(len(line) > 130 for line in log[:4]) and "\x1b" not in "".join(log)


def test_ctrl_c_takes_the_bar_away_and_leaves_what_was_done():
    seen = watch("-c", VERB, columns=80, interrupt="variant_0  ✓ pass")
    assert not BAR.search(seen.text) and "━" not in seen.text and "Traceback" not in seen.text
    assert "gelu/triton:variant_0" in seen.text and re.search(r"^[123] pass$", seen.text, re.MULTILINE), seen.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "given", "doing", "record"),
    [
        (
            40,
            "check gelu/torch --workload n=5,dtype=fp32",
            ("check 0:00:00 reading the kernels", "gelu/torch fp32"),
            "gelu/torch fp32 ✓ pass",
        ),
        (
            100,
            "inspect gelu/cuda --summary",
            ("building 0:00:00 starting", "gelu/cuda n="),
            "gelu/cuda n=4194304,dtype=fp32 sm_90",
        ),
    ],
)
def test_check_and_inspect_keep_their_bar_apart_from_their_records(columns, given, doing, record, tmp_path):
    """Real commands; that this holds in any width is shown above, with a verb that does nothing."""
    seen = watch(shell=f"$ASSAY {given}", columns=columns, cwd=tmp_path)
    assert seen.code == 0, seen.text
    shown = bars(seen.screens)
    for words in doing:
        assert any(words in without_bar(line) for line in shown), (words, shown)
    assert not [line for line in shown if "✓" in line or "nvrtc" in line or "occupancy" in line]
    assert not BAR.search(seen.text) and "0/0" not in "".join(bars(seen.screens))
    assert record in " ".join(seen.text.split())
