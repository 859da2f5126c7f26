"""What a newcomer looks at first: the help, the version, and the names that Python offers."""

import subprocess
import sys

import pytest

import assay as package
from assay.cli.main import VERBS, app
from command import assay


@pytest.mark.parametrize("columns", ["50", "80", "200"])
def test_help_has_every_verb_with_its_whole_summary(columns):
    said = assay("--help", env={"COLUMNS": columns}).said
    commands = {c.name: c.callback.__doc__ for c in app.registered_commands}
    commands |= {g.name: g.typer_instance.info.help for g in app.registered_groups}
    for verb in VERBS:
        summary = " ".join(commands[verb].partition("\n\n")[0].split())
        assert f"{verb} {summary}" in said, summary


def test_the_help_of_models_is_whole_too():
    said = assay("model", "--help").said
    assert "train Train a model on the training split, choose its best epoch by validation, and judge it once" in said


def test_the_version_is_the_packages_own():
    done = assay("--version")
    assert (done.code, done.out) == (0, f"assay {package.__version__}\n")


def test_dir_shows_the_public_names_and_only_those():
    script = (
        "import assay\n"
        "assert sorted(dir(assay)) == sorted([*assay.__all__, '__version__']), dir(assay)\n"
        "for name in dir(assay): getattr(assay, name)\n"
        "assert sorted(dir(assay)) == sorted([*assay.__all__, '__version__']), 'after their first use'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
    for name in ("Any", "TYPE_CHECKING", "annotations", "lazy", "errors", "record"):
        assert name not in dir(package)
