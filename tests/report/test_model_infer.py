"""How `assay model infer` is shown."""

from dataclasses import replace
from pathlib import Path

import pytest

from assay.bench.statistics import Estimate
from assay.record import Status, read
from assay.report import infer_tables, model_infer
from assay.report.table import Note, to_html, to_rich
from assay.units import si

RECORDS = Path(__file__).parents[2] / "results" / "h200" / "models" / "mnist-cnn-ln.json"


@pytest.fixture(scope="module")
def ones():
    timed = [one for one in infer_tables.read(read(RECORDS)) if one.record.median and one.evidence.dtype == "fp32"]
    batch = infer_tables.shown_batch(timed)
    return [one for one in timed if one.evidence.batch == batch]


def one_of(ones, low, median, high, status=Status.PASS, arm="eager"):
    one = next(o for o in ones if o.evidence.speedup and o.evidence.arm == arm)
    evidence = replace(one.evidence, speedup=Estimate(median, (low, high)), variant="njit", arm=arm)
    return infer_tables.One(replace(one.record, status=status), evidence)


@pytest.mark.parametrize(
    ("figures", "status", "said"),
    [
        ((0.6, 0.667, 0.7), Status.PASS, "njit is 1.50 × slower here: leave it out"),
        ((1.2, 1.3, 1.4), Status.PASS, "njit is 1.30 × faster here"),
        ((0.9, 1.1, 1.2), Status.PASS, "njit is no different within the noise here"),
        ((1.2, 1.3, 1.4), Status.FAIL, "njit is wrong here: leave it out"),
    ],
)
def test_a_variant_has_a_conclusion_in_one_line(ones, figures, status, said):
    assert list(model_infer.conclusions([one_of(ones, *figures, status)])) == [said]


def test_a_variant_that_is_faster_in_one_arm_is_not_left_out(ones):
    both = [one_of(ones, 0.4, 0.5, 0.6), one_of(ones, 1.5, 2.0, 2.5, arm="graphed")]
    assert list(model_infer.conclusions(both)) == ["njit is 2.00 × slower (eager), 2.00 × faster (graphed) here"]


def test_layers_and_sites_have_one_baseline(ones):
    """Both tables show PyTorch's time in the variant's own process."""
    compared = [o for o in ones if o.evidence.sites and o.evidence.layers and o.evidence.rules]
    assert compared
    for one in compared:
        layers = infer_tables.layers([one])
        told = {row.layer: row.torch[one.evidence.variant] for row in layers.rows}
        checked = 0
        for row in one.evidence.sites:
            if row.form == "module" and row.in_model and row.site in told:
                assert told[row.site] == pytest.approx(row.in_model.torch)
                checked += 1
        assert checked or not any(r.form == "module" and r.site in told for r in one.evidence.sites)
        assert f"{one.evidence.variant}, from torch" in [str(c.header) for c in to_rich(layers).columns]
        longest = layers.rows[0]
        pair = si(longest.torch[one.evidence.variant], "s", 3) + " → "
        assert pair in to_html(layers) and longest.torch[one.evidence.variant] == max(told.values())


def test_times_of_two_processes_are_not_shown_beside_each_other(ones):
    """The plain model alone took a process of its own, on a machine that may have been busier then."""
    assert any(not o.evidence.rules and o.evidence.layers for o in ones)
    titles = [str(c.header) for c in to_rich(infer_tables.layers(ones)).columns]
    assert "torch" not in titles and any("from torch" in t for t in titles)


def test_a_time_in_the_model_beyond_the_whole_pass_is_marked(ones):
    one = next(o for o in ones if o.evidence.sites and all(row.in_model for row in o.evidence.sites))
    first, *others = one.evidence.sites

    def shown(row):
        evidence = replace(one.evidence, sites=[row, *others])
        record = replace(one.record, evidence=evidence.to_dict())
        table = infer_tables.sites(infer_tables.read([record]))
        return to_html(table), [p.text for p in model_infer.parts([record]) if isinstance(p, Note)]

    marked, notes = shown(replace(first, exceeds=True))
    assert marked.count(" ?</td>") == 1 and any(n.startswith(f"? {first.site}: the time in the model") for n in notes)
    plain, notes = shown(first)
    assert " ?</td>" not in plain and not any("exceeds the whole pass" in n for n in notes)


def test_the_conclusion_comes_before_the_explanations(ones):
    parts = list(model_infer.parts([one.record for one in ones]))
    notes = [p.text for p in parts if isinstance(p, Note)]
    assert notes and " is " in notes[0] and notes[0].endswith(("here", "leave it out"))
