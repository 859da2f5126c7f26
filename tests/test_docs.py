"""What the documents say is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from assay.kernel import BACKENDS

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("page", "commands"), [("first-kernel.md", 5), pytest.param("ops.md", 4, marks=pytest.mark.whole)]
)
def test_a_page_takes_a_reader_from_an_empty_folder_to_a_verdict(page, commands, tmp_path):
    """Every file is written, every command run, and every promised line of output looked for."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "assay").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m assay "$@"\n')
    (tools / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    folder = tmp_path / "mine"
    folder.mkdir()
    environment = os.environ | {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": "250",
    }
    ran, said = 0, ""
    for language, about, body in BLOCK.findall((ROOT / "docs" / page).read_text()):
        if name := re.search(r"file=(\S+)", about):
            (folder / name[1]).write_text(body)
        elif language == "sh" and "run" in about:
            done = subprocess.run(body, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
            said = done.stdout + done.stderr
            assert (done.returncode != 0) == ("fails" in about), said
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
