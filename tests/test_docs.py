"""What the documents say is what happens."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from assay.kernel import BACKENDS

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(words, assay, folder):
    """A line of shell without anything of a shell in it: its exit code, and what it printed."""
    program, *arguments = words
    if program == "assay":
        done = assay(*arguments, cwd=folder, env={"ASSAY_STORE": str(folder / "records.sqlite")})
    else:
        assert program == "python"
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


WHOLE = pytest.mark.whole


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "commands"),
    [
        ("first-kernel.md", 6),
        ("ci.md", 2),
        ("tune.md", 2),
        pytest.param("languages.md", 2, marks=WHOLE),
        pytest.param("huggingface.md", 3, marks=WHOLE),
        pytest.param("ops.md", 5, marks=WHOLE),
        pytest.param("report.md", 2, marks=WHOLE),
    ],
)
def test_a_page_takes_a_reader_from_an_empty_folder_to_a_verdict(page, commands, request, assay, tmp_path):
    """Every file is written, every command run, and every promised line of output looked for. Long commands are left
    to `make selftest`."""
    whole = request.node.get_closest_marker("whole") is not None
    ran, said = 0, ""
    for language, about, body in BLOCK.findall((ROOT / "docs" / page).read_text()):
        if name := re.search(r"file=(\S+)", about):
            (tmp_path / name[1]).write_text(body)
        elif language == "sh" and "run" in about and (whole or "long" not in about):
            for line in body.splitlines():
                code, said = run(shlex.split(line, comments=True), assay, tmp_path)
                assert (code != 0) == ("fails" in about), said
            ran += 1
        elif "output" in about:
            for line in filter(None, body.splitlines()):
                assert " ".join(line.split()) in " ".join(said.split()), said
    assert ran >= commands


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(page):
    file = ROOT / page
    prose = BLOCK.sub("", file.read_text())
    for link in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (file.parent / link).exists(), link


def test_readme_names_every_verb_and_language():
    from assay.cli.main import VERBS

    text = (ROOT / "README.md").read_text()
    for verb in VERBS:
        assert f"assay {verb}" in text
    assert all(b in text for b in BACKENDS)


def test_readme_explains_the_words_of_records_and_pages():
    """Statuses, the columns of tables, and words that mean something of their own here."""
    from assay.compare import Verdict
    from assay.record import Status

    words = (ROOT / "README.md").read_text().partition("## The words")[2]
    explained = {word.lower() for word in re.findall(r"\*\*([^*]+)\*\*", words)}
    own = (
        "run, oracle, tolerance, rounding unit, share, detector, controls, peer, beyond_range, cold, hot, call, round, "
    )
    own += "baseline, speedup, copy, limit, model, roofline, floor, site, swap, arm, alone, in the model, gain, saves, "
    own += "twin, mutant"
    assert {*map(str, Status), *(v.lower() for v in Verdict), *own.split(", ")} <= explained


def test_an_error_has_a_tolerance_and_a_speed_has_a_limit():
    """One word for each: an error is never held against a limit, on no page and in no sentence of a verdict."""
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", *(ROOT / "src" / "assay" / "check").glob("*.py")]
    for file in pages:
        text = " ".join(file.read_text().split())
        for wrong in re.findall(r"(?i)(?:error|values)[^.;|]{0,40} (?:its|the|a) limit\b", text):
            assert "time limit" in wrong, f"{file.name}: {wrong}"


def test_every_detector_is_explained():
    from assay.selftest.entry import DETECTORS

    text = (ROOT / "docs" / "check.md").read_text() + (ROOT / "docs" / "selftest.md").read_text()
    for detector in DETECTORS:
        assert f"`{detector}`" in text, detector


def test_results_are_what_the_records_give():
    if not (ROOT / "results").exists():
        pytest.skip("no records committed yet")
    done = subprocess.run([sys.executable, ROOT / "tools" / "results.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_path_of_a_machine_is_written_into_the_project():
    for file in subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split():
        path = ROOT / file
        if path.suffix in (".py", ".md", ".cu", ".cuh", ".toml", ".txt") and path.exists() and path != Path(__file__):
            text = path.read_text()
            assert "/work/" not in text and "/root/" not in text, file
