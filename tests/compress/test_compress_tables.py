"""What the committed curves of compressed models show, and the tables made of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from assay.compress.evidence import CompressEvidence
from assay.compress.paired import difference
from assay.record import read

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from compress_tables import RECORDS, join  # noqa: E402

FOUND = [CompressEvidence.of(r) for r in read(RECORDS / "minilm-imdb.json")]


def at(method, width=None):
    return [e for e in FOUND if (e.study, e.method, e.width) == ("quantize", method, width)]


@pytest.mark.slow
def test_the_tables_are_what_the_records_give():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "compress_tables.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_minilm_imdb_is_right_in_nine_of_ten_reviews_at_512_tokens_whatever_the_seed():
    control = at("control")
    assert len({e.seed for e in control}) == 3
    for one in control:
        assert one.base_accuracy >= 0.90 and not one.quick
        assert (one.sizes.train, one.sizes.test, one.sizes.tokens) == (19_904, 2_500, 512)


def test_trained_on_with_8_bits_in_weights_and_inputs_it_is_within_half_a_point_of_its_control():
    (gap,) = [difference(at("qat", 8), at("control"))]
    assert gap.seeds == 3 and gap.points >= -0.5
    assert all(e.format == "int:8:channel" and set(e.parts) == {"weights", "inputs"} for e in at("qat", 8))


@pytest.mark.parametrize("width", sorted({e.width for e in FOUND if e.method == "qat" and e.width <= 8}))
def test_training_on_is_never_worse_than_rounding_alone(width):
    gap = difference(at("qat", width), at("ptq", width))
    assert gap.seeds == 3 and not gap.worse


def test_of_a_point_that_was_taken_twice_the_later_is_kept(tmp_path):
    records = read(RECORDS / "minilm-imdb.json")
    join(tmp_path / "all.json", [records[:3], records[2:5]])
    assert [r.workload for r in read(tmp_path / "all.json")] == [r.workload for r in records[:5]]
