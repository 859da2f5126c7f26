"""Runs of one model with different kernels are shown apart, each with its kernels."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.bench.statistics import Estimate
from assay.record import read
from assay.report import infer_runs, infer_tables, model_infer, page, rows
from assay.report.charts import infer as chart
from assay.report.table import Note, to_html, to_rich

RECORDS = Path(__file__).parents[2] / "results" / "h200" / "models" / "mnist-cnn-ln.json"
GELU, NORM = {"gelu": "gelu/triton"}, {"layernorm": "layernorm/cuda"}


@pytest.fixture(scope="module")
def recorded():
    timed = [o for o in infer_tables.read(read(RECORDS)) if o.record.median and o.evidence.dtype == "fp32"]
    plain = next(o for o in timed if not o.evidence.rules and o.evidence.arm == "eager" and o.evidence.layers)
    own = next(o for o in timed if o.evidence.rules and o.evidence.arm == "eager" and o.evidence.layers)
    return plain, own


@pytest.fixture
def made(recorded):
    def run(rules, number, batches=(8,), times=2.0, torch=1e-3, swap="swap"):
        """The records of one run: torch by itself, and one variant."""
        plain, own = recorded
        about = {"run": f"20261101-00000{number}-aaa"}
        records = []
        for batch in batches:
            for one, kernels, name in ((plain, {}, "torch"), (own, rules, swap)):
                evidence = replace(one.evidence, variant=name, rules=kernels, batch=batch)
                if kernels:
                    layers = [replace(layer, torch=torch, variant=torch / times) for layer in own.evidence.layers]
                    gain = Estimate(times, (times - 0.1, times + 0.1))
                    evidence = replace(evidence, layers=layers, speedup=gain)
                evidence = replace(evidence, latency={"torch": Estimate(torch, (torch, torch))})
                place = {"provenance": plain.record.provenance | {"time": f"2026-11-01T00:00:0{number}"}}
                workload = f"infer,variant={name},arm=eager,batch={batch},dtype=fp32,device=cuda"
                records.append(
                    replace(one.record, workload=workload, evidence=evidence.to_dict(), median=torch, **place, **about)
                )
        return records

    return run


def tables(records):
    parts = list(model_infer.parts(rows.latest(records)))
    return [p for p in parts if not isinstance(p, Note)], [p.text for p in parts if isinstance(p, Note)]


def test_two_runs_with_different_kernels_have_tables_and_verdicts_of_their_own(made):
    every = [*made(GELU, 1, times=2.0, torch=1e-3), *made(NORM, 2, times=0.5, torch=4e-3)]
    drawn, notes = tables(every)
    layers = [table for table in drawn if table.title.endswith("by layer")]
    assert [t.title.partition(", batch")[0] for t in layers] == [
        "mnist-cnn-ln  fp32, gelu=gelu/triton",
        "mnist-cnn-ln  fp32, layernorm=layernorm/cuda",
    ]
    for table, pair in zip(layers, ("1.00 ms → 500 µs", "4.00 ms → 8.00 ms"), strict=True):
        assert [str(c.header) for c in to_rich(table).columns].count("swap, from torch") == 1
        assert pair in to_html(table).replace("\u202f", " ").replace("\xa0", " ")
    verdicts = [note for note in notes if note.startswith("swap is")]
    assert verdicts == ["swap is 2.00 × faster here", "swap is 2.00 × slower here: leave it out"]
    assert [note for note in notes if "the host was not steady" in note] == []


def test_of_two_runs_with_the_same_kernels_the_newest_is_shown(made):
    drawn, notes = tables([*made(GELU, 1, batches=(8, 16)), *made(GELU, 2, times=3.0)])
    first = [table for table in drawn if "H200" in table.title]
    assert [table.title.partition(",")[0] for table in first] == ["mnist-cnn-ln  fp32"]
    assert "swap is 3.00 × faster here" in notes and "swap is 2.00 × faster here" not in notes
    assert any(note.endswith("an older one also measured the batch sizes eager 16") for note in notes)
    older = made(GELU, 1)
    assert [run.ones[0].record.run for run in infer_runs.runs(infer_tables.read([*older, *made(GELU, 2)]))] == [
        "20261101-000002-aaa"
    ]


def test_a_run_keeps_the_baseline_of_its_own_process(made):
    runs = infer_runs.runs(infer_tables.read([*made(GELU, 1), *made(NORM, 2)]))
    assert [[o.evidence.variant for o in run.ones] for run in runs] == [["torch", "swap"]] * 2


def test_a_run_of_a_language_is_labelled_only_beside_others(made):
    alone = infer_runs.runs(infer_tables.read(made(GELU, 1, swap="triton")))
    assert [run.label for run in alone] == [""]
    both = infer_runs.runs(infer_tables.read([*made(GELU, 1, swap="triton"), *made(NORM, 2)]))
    assert [run.label for run in both] == ["triton", "layernorm=layernorm/cuda"]


def test_the_chart_has_an_entry_for_each_run(made):
    spec = chart.draw(rows.latest([*made(GELU, 1), *made(NORM, 2)])).to_dict()
    cases = {
        row["case"] for part in page._with_rows(spec) for row in json.loads(part["data"]["values"]) if "case" in row
    }
    assert {case.split(" · ")[2] for case in cases if case} == {"gelu=gelu/triton", "layernorm=layernorm/cuda"}
