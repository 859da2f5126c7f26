"""Charts of compression and search: what their rows say is what the records say."""

import pytest

pytest.importorskip("altair")

from assay.compress.evidence import CompressEvidence
from assay.record import Record, Status
from assay.report.charts import FIGURES, compress, search, sensitivity, trade
from assay.search.evidence import Goal, SearchEvidence


def compressed(method, accuracy, *, width=None, sparsity=None, seed=0, bits=800, latency=None):
    study = "prune" if sparsity is not None else "quantize"
    evidence = CompressEvidence(
        study=study,
        method=method,
        format=f"fixed:{width}:F" if width else "",
        width=width,
        sparsity=sparsity,
        seed=seed,
        data="mnist",
        accuracy=accuracy,
        validation=accuracy,
        bits=bits,
        base_bits=3200,
        latency=latency,
    )
    return Record(
        "compress", "mnist-cnn", f"{study},{method},seed={seed}", Status.PASS, "", evidence=evidence.to_dict()
    )


def trial(number, bits, accuracy, allowed, sampler="tpe", seed=0, **more):
    evidence = SearchEvidence(
        study="precision",
        role="trial",
        state="finished",
        trial=number,
        sampler={"name": sampler},
        goals=[Goal("bits", "minimize")],
        allowed=allowed,
        seed=seed,
        accuracy=accuracy,
        bits=bits,
        **{"name": f"{sampler}-{seed}"} | more,
    )
    return Record("search", "mnist-cnn", f"trial={number}", Status.PASS, "", evidence=evidence.to_dict())


CURVE = [
    compressed("control", 0.99, bits=3200),
    *(compressed("ptq", share, width=8, seed=seed) for seed, share in enumerate((0.97, 0.98, 0.96))),
    compressed("qat", 0.985, width=8),
    compressed("ptq", 0.5, width=2, bits=200),
]


def test_a_point_is_the_mean_over_seeds_and_the_band_spans_them():
    rows = compress.curves(CURVE, "quantize")
    (ptq,) = (r for r in rows if r["method"] == "ptq" and r["at"] == 8)
    assert (ptq["mean"], ptq["low"], ptq["high"], ptq["seeds"]) == (pytest.approx(0.97), 0.96, 0.98, 3)


def test_the_control_is_a_level_line_from_end_to_end():
    control = [r for r in compress.curves(CURVE, "quantize") if r["method"] == "control"]
    assert [(r["at"], r["mean"]) for r in control] == [(2.0, 0.99), (8.0, 0.99)]


def test_sparsity_has_a_curve_of_its_own():
    records = [*CURVE, compressed("l1", 0.9, sparsity=50.0), compressed("random", 0.7, sparsity=50.0)]
    assert {r["method"] for r in compress.curves(records, "prune")} == {"l1", "random"}


def test_formats_are_compared_by_the_bits_of_a_weight():
    rows = trade.formats(CURVE)
    assert {(r["case"].split(" · ")[1], r["format"], r["bits"]) for r in rows} == {
        ("ptq", "fixed:W:F", 8.0),
        ("ptq", "fixed:W:F", 2.0),
        ("qat", "fixed:W:F", 8.0),
    }


def test_the_front_has_what_none_beats_in_both():
    found = trade.models([*CURVE, trial(0, 700, 0.98, True), trial(1, 900, 0.97, True)])
    best = trade._best(found, "bits")
    assert sorted((m.bits, m.accuracy) for m in best) == [(200, 0.5), (700, 0.98), (800, 0.985), (3200, 0.99)]


def test_the_best_so_far_counts_only_what_is_accurate_enough():
    trials = [
        trial(0, 500, 0.6, False),
        trial(1, 900, 0.98, True),
        trial(2, 950, 0.98, True),
        trial(3, 700, 0.97, True),
    ]
    rows = search.curves(trials)
    assert [(r["trial"], r["mean"]) for r in rows] == [(2, 900), (3, 900), (4, 700)]


def test_runs_that_differ_in_more_than_their_seed_are_lines_of_their_own():
    def run(name, seed, bits, **more):
        return trial(0, bits, 0.98, True, name=name, seed=seed, **more)

    studies = [
        run("a", 0, 400, format="fixed:W:F"),
        run("b", 1, 600, format="fixed:W:F"),
        run("c", 0, 500, format="int:W:channel"),
        run("d", 0, 300, format="fixed:W:F", suggested_by="sensitivity"),
    ]
    assert {(r["line"], r["low"], r["mean"], r["high"]) for r in search.curves(studies)} == {
        ("tpe · fixed:W:F", 400, 500, 600),
        ("tpe · int:W:channel", 500, 500, 500),
        ("tpe, seeded by sensitivity · fixed:W:F", 300, 300, 300),
    }
    modes = [run("e", 0, 400, mode="train"), run("f", 0, 200, mode="compress", format="int:4:channel")]
    assert {r["line"] for r in search.curves(modes)} == {"tpe · train", "tpe · compress"}


def test_a_tensor_is_judged_alone_against_the_control():
    evidence = SearchEvidence(
        study="sensitivity",
        role="trial",
        accuracy=0.95,
        control_accuracy=0.98,
        parameters={"tensor": "fc1.weight", "width": "3"},
        format="fixed:W:F",
    )
    record = Record("search", "mnist-cnn", "sensitivity", Status.PASS, "", evidence=evidence.to_dict())
    (cell,) = sensitivity.cells_of([record, trial(0, 1, 0.9, True)])
    assert (cell["tensor"], cell["width"], cell["shown"]) == ("fc1.weight", 3, "-3.00")
    assert sensitivity.draw([record]) is not None and sensitivity.draw([]) is None


@pytest.mark.parametrize("name", ["quantize", "prune", "formats", "pareto", "latency", "search"])
def test_they_are_drawn(name):
    figure = next(f for f in FIGURES if f.name == name)
    records = [
        *CURVE,
        compressed("l1", 0.9, sparsity=50.0),
        compressed("ptq", 0.98, width=4, latency=1e-3),
        compressed("qat", 0.98, width=4, latency=2e-3),
        trial(0, 700, 0.97, True),
    ]
    extra = compressed("ptq", 0.9, width=8)
    extra.evidence["format"] = "int:8:channel"
    spec = figure.spec([*records, extra])
    assert spec is not None and spec["layer"]
    assert figure.spec([]) is None
