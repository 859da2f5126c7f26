"""What the committed records of precision searches show, and the table made of them."""

import subprocess
import sys
from pathlib import Path
from statistics import median

from assay.record import read

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from search_table import RECORDS, trials, winners  # noqa: E402


def test_the_table_is_what_the_records_give():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "search_table.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_seeded_by_sensitivity_20_trials_reach_what_tpe_reaches_in_60():
    seeded, sampled = read(RECORDS / "seeded.json"), read(RECORDS / "tpe.json")
    assert (trials(seeded), trials(sampled)) == (20, 60) and len(winners(seeded)) == len(winners(sampled)) == 5
    best = [[w.evidence["bits"] for w in winners(side).values()] for side in (seeded, sampled)]
    assert median(best[0]) <= median(best[1])
    for winner in winners(seeded).values():  # the fewest bits of the space
        widths = winner.evidence["parameters"]
        assert {width for name, width in widths.items() if name.endswith(".weight")} == {"2"}
    for winner in [*winners(seeded).values(), *winners(sampled).values()]:
        assert winner.evidence["accuracy"] >= winner.evidence["control_accuracy"] - 0.005 - 1e-9
        assert not winner.evidence["quick"]
