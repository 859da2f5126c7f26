"""`import assay` and `assay --help` are instant because they load nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = ("ray", "torch", "triton", "numba", "cupy", "numpy", "hypothesis")


@pytest.mark.parametrize(
    "code",
    [
        "import assay",
        "import assay.cli.main",
        "import assay.models.studies.infer, assay.models.swap, assay.models.studies.train",
        "from assay.catalog import library; assert library.kernels() and library.swappable()",
    ],
)
def test_nothing_heavy_is_imported(code):
    script = f"{code}\nimport sys\nprint([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_loads_nothing_heavy_and_names_every_verb():
    script = (
        "import sys; sys.argv = ['assay', '--help']\nfrom assay.cli import main\ntry: main()\nexcept SystemExit: pass\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
    for verb in ("doctor", "list", "check", "run", "selftest"):
        assert verb in done.stdout


def test_the_verb_stays_callable_after_its_room_is_imported():
    script = "import assay, assay.check\nfrom assay.check import judge\nassert callable(assay.check)"
    subprocess.run([sys.executable, "-c", script], check=True)
