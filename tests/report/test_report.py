"""The page people look at: offline, whole for any set of records, drawn, filtered and hovered in a real browser."""

import json
import re
import struct
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay import units
from assay.errors import UsageError
from assay.record import Record, Status, document, read
from assay.report import Records, answer, html_table, machine, report, rows
from assay.report.charts import FIGURES, roofline, sweeps
from assay.report.page import render
from made_records import MADE, OF_KERNELS, OPS, SOME, everything, synthetic_benches, synthetic_machine

ROOT = Path(__file__).parents[2]
H200 = ROOT / "results" / "h200"


def offline(page):
    """Nothing in the markup points outside; and the page's own policy forbids to fetch."""
    return not re.search(r"""(?:src|href|action|srcset)\s*=\s*["']?\s*(?:https?:)?//""", page, re.I) and (
        "default-src 'none'" in page and "@import" not in page and not re.search(r"url\(\s*['\"]?(?:https?:)?//", page)
    )


class Outline(HTMLParser):
    """Which tags were left open or closed twice; which ids occur, and which are pointed at."""

    VOID = ("meta", "input", "br", "link", "img", "path", "circle")

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.ids, self.targets, self.tags = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [v for k, v in attrs if k == "id"]
        self.targets += [v[1:] for k, v in attrs if k == "href"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def outline(page):
    found = Outline()
    found.feed(page)
    assert not found.wrong and not found.open
    assert len(set(found.ids)) == len(found.ids) and set(found.targets) <= set(found.ids)
    return found


@pytest.mark.slow
def test_the_page_is_one_offline_file_that_opens_with_the_answer(whole):
    page = whole.read_text()
    assert offline(page) and [p.name for p in whole.parent.iterdir()] == ["page.html"]
    found = outline(page)
    assert set(found.ids) >= {f.name for f in OF_KERNELS} | {
        "fastest",
        "failures",
        "machine",
        "selftest",
        "provenance",
        "records",
    }
    checked = read(H200 / "check.json")
    count, unclear = len({r.kernel for r in checked}), len({r.kernel for r in checked if r.status == "inconclusive"})
    said = f"{count - unclear - 3} of {count} kernels pass; 2 failed, {unclear} inconclusive, 1 compiled only."
    assert said in page, re.findall(r"\d+ of \d+ kernels pass[^.]*", page)
    assert page.index("What failed") < page.index('data-figure="verdicts"') < page.index('id="provenance"')
    assert "580.159.04" in page and "Synthetic GPU" in page
    assert all(r.provenance["commit"] in page for r in checked)
    # What a record says stays text.
    assert "<script>alert(1)" not in page and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
    assert "A &lt;b&gt;title&lt;/b&gt; &amp; more" in page


def test_a_cell_of_verdicts_shows_its_passing_variant_and_counts_the_skipped_ones(tmp_path):
    def checked(kernel, status, **evidence):
        return Record("check", kernel, "dtype=fp32", status, "", evidence=evidence)

    passing = checked("gelu/inductor", Status.PASS, errors={"out": {"share": 0.12}})
    skipped = [checked(f"gelu/inductor:{name}", Status.SKIPPED) for name in ("max_autotune", "freezing")]
    failing = [checked("gelu/cuda:a", Status.FAIL), checked("gelu/cuda:b", Status.PASS)]
    report([passing, *skipped, *failing], tmp_path / "page.html", pictures=tmp_path)
    texts = [t.text for t in ElementTree.parse(tmp_path / "verdicts.svg").iter() if t.tag.endswith("text")]
    assert {"12\u00a0%", "2 skipped"} <= set(texts)
    assert texts.count("fail") == 2, "in the cell and in the legend"
    assert texts.count("skipped") == 1, "only in the legend: no cell is skipped as a whole"


def test_the_offline_check_would_notice():
    assert not offline("default-src 'none' <img src='https://example.org/x.png'>")
    assert not offline("default-src 'none' <a href=//example.org>x</a>")


def test_only_what_is_right_can_be_fastest():
    """A kernel that fails its check for a dtype, or its bench, wins nothing there, however fast it claims to be."""
    benches = list(synthetic_benches(ops={"gelu": OPS["gelu"]}, sizes=(12,), dtypes=("fp32",)))
    (first,) = answer.fastest(benches)
    winner = next(r for r in benches if r.kernel == first["kernel"])
    assert winner.median == min(r.median for r in benches) and not first["wrong_but_faster"]
    wrong = Record("check", winner.kernel, "dtype=fp32", Status.FAIL, "wrong")
    (second,) = answer.fastest([*benches, wrong])
    assert second["kernel"] != first["kernel"] and second["wrong_but_faster"]
    other_dtype = replace(wrong, workload="dtype=bf16")
    assert answer.fastest([*benches, other_dtype])[0]["kernel"] == first["kernel"]
    told = answer.fastest([replace(r, status=Status.FAIL) if r is winner else r for r in benches])
    assert told[0]["kernel"] == second["kernel"]


def test_the_newest_record_of_the_same_thing_is_shown_and_the_page_says_how_many_are_not(tmp_path):
    old = next(synthetic_benches())
    new = replace(old, median=old.median * 2, provenance=MADE | {"time": "2001-01-01T00:00:00Z"})
    elsewhere = replace(old, provenance=MADE | {"gpu": "Another synthetic GPU"})
    assert rows.latest([new, old, elsewhere]) == [elsewhere, new]
    assert "1 earlier records" in report([new, old, elsewhere], tmp_path / "page.html").read_text()


def test_a_fixed_kernel_passes_on_the_page_and_is_among_the_fastest_again(tmp_path):
    """check shrinks a failure to a workload of its own, which no later check repeats."""
    bench = next(synthetic_benches(ops={"gelu": OPS["gelu"]}, sizes=(12,), dtypes=("fp32",)))
    wrong = Record("check", bench.kernel, "n=1,dtype=fp32", Status.FAIL, "values: off", provenance=MADE)
    fixed = Record(
        "check", bench.kernel, "dtype=fp32", Status.PASS, "", provenance=MADE | {"time": "2000-01-02T00:00:00Z"}
    )
    before = report([bench, wrong], tmp_path / "before.html").read_text()
    assert "0 of 1 kernel passes; 1 failed." in before and 'id="failures"' in before
    assert answer.fastest(rows.latest([bench, wrong])) == []
    after = report([bench, wrong, fixed], tmp_path / "after.html").read_text()
    assert "1 of 1 kernel passes." in after and 'id="failures"' not in after
    assert "1 earlier records are superseded" in after
    assert [f["kernel"] for f in answer.fastest(rows.latest([bench, wrong, fixed]))] == [bench.kernel]


def test_a_time_that_did_not_settle_says_so(tmp_path):
    record = next(synthetic_benches())
    trouble = {
        "converged": False,
        "clocks": {"throttle": ["power cap"]},
        "launches": 3,
        "second_clock": {"agrees": False, "why": "launch-bound"},
    }
    (row,) = rows.benches([replace(record, evidence=record.evidence | trouble)])
    assert all(w in row["Notes"] for w in ("not converged", "power cap", "launch-bound", "3 kernels"))
    assert rows.benches([record])[0]["Notes"] == units.NOTHING
    bad, good = (replace(record, evidence=record.evidence | {"converged": c}) for c in (False, True))
    assert "did not converge" in report([bad], tmp_path / "bad.html").read_text()
    assert "did not converge" not in report([good], tmp_path / "good.html").read_text()


def test_devices_are_never_compared_with_each_other():
    benches = list(synthetic_benches(ops={"gelu": OPS["gelu"]}, sizes=(12,), dtypes=("fp32",)))
    cpu = [replace(r, evidence=r.evidence | {"device": "cpu"}, median=r.median * 100) for r in benches]
    told = answer.fastest([*benches, *cpu])
    threads = [replace(r, evidence=r.evidence | {"threads": n}) for r in cpu for n in (1, 8)]
    assert len({r["case"] for r in rows.benches(threads)}) == 2 and len(answer.fastest(threads)) == 2
    assert {r["device"] for r in told} == {"Synthetic GPU", "Synthetic CPU, 16 cores"} and len(told) == 2
    assert len({r["case"] for r in rows.benches([*benches, *cpu])}) == 2


def subsets(draw):
    """Any records, some of them stripped of what a chart would like to have."""
    strip = st.sampled_from(["", "evidence", "provenance", "workload", "samples", "median", "kernel"])
    empty = {"evidence": {}, "provenance": {}, "workload": "", "samples": None, "median": None, "kernel": "lone"}

    def stripped(pair):
        record, what = pair
        return replace(record, **{what: empty[what]}) if what else record

    return draw(st.lists(st.tuples(st.sampled_from(SOME), strip).map(stripped), max_size=12))


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.composite(subsets)())
def test_any_set_of_records_gives_a_whole_page(records):
    page = render(rows.latest(records), title="Assay report")
    assert offline(page)
    outline(page)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keep", "drawn"),
    [
        (lambda r: r.verb == "check", {"verdicts"}),
        (lambda r: r.verb == "bench", {"runtime", "roofline", "copy", "scaling", "heatmap", "samples"}),
        (lambda r: r.status == "fail", {"verdicts"}),
        (lambda r: r.verb in ("selftest", "machine"), set()),
    ],
    ids=["only check", "only bench", "only failures", "neither"],
)
def test_a_chart_is_drawn_where_there_is_something_to_draw(keep, drawn):
    few = synthetic_benches(ops={"layernorm": OPS["layernorm"]}, sizes=(10, 12, 14), rounds=2)
    records = [r for r in [*everything()[:60], *few, *SOME] if keep(r)]
    assert {f.name for f in FIGURES if f.spec(records)} == drawn
    for figure in FIGURES:
        if chart := figure.draw(records):
            chart.to_dict(validate=True)


def test_the_roofline_names_its_model_and_falls_back_on_the_copy():
    benches = list(synthetic_benches(ops={"gelu": OPS["gelu"], "conv2d": OPS["conv2d"]}, sizes=(12, 14)))
    points = [r for r in rows.benches(benches) if r["intensity"]]
    lines = {line["name"]: line for line in roofline.ceilings([*benches, synthetic_machine()], points)}
    assert set(lines) == {"DRAM copy", "L2 read", "fp32 vector", "bf16 tensor"}
    assert all(line["model"] == "Synthetic GPU, measured 2000-01-01T00:00:00Z" for line in lines.values())
    assert "808 TFLOP/s" in lines["bf16 tensor"]["label"].replace("\u00a0", " "), "the faster of mma and wgmma"
    for line in (x for x in lines.values() if x["name"] in ("DRAM copy", "L2 read")):
        assert line["flops"] / line["intensity"] == pytest.approx(
            {"DRAM copy": 4.2e12 * 1.01, "L2 read": 9.1e12 * 1.01}[line["name"]]
        )
    (name,) = {line["name"] for line in roofline.ceilings(benches, points)}
    assert name == "copy"
    cpu = synthetic_machine().evidence["model"] | {"device": "Synthetic CPU, 12 cores"}
    on_cpu = [replace(synthetic_machine(), evidence={"model": cpu})]
    assert machine.model_of(on_cpu, "Synthetic CPU, 16 cores").device == "Synthetic CPU, 12 cores"
    assert machine.model_of(on_cpu, "Synthetic") is None
    light = [p for p in points if p["op"] == "gelu"]
    assert "bf16 tensor" not in {x["name"] for x in roofline.ceilings([*benches, synthetic_machine()], light)}


def test_sweeps_are_found_along_one_axis_and_over_two():
    found = rows.benches(synthetic_benches(ops={"layernorm": OPS["layernorm"]}, dtypes=("bf16",)))
    along = {r["sweep"] for r in sweeps.along_one(found)}
    assert "layernorm · bf16 · rows (cols=1024)" in along and "layernorm · bf16 · cols (rows=65536)" in along
    assert len(along) == 3 + 4
    planes = sweeps.over_two(found)
    assert {r["plane"] for r in planes} == {"layernorm · bf16 · rows × cols"} and len(planes) == len(found)
    one = [r for r in found if r["workload"].startswith("rows=1024,cols=1024")]
    assert not sweeps.along_one(one) and not sweeps.over_two(one)


@pytest.mark.slow
def test_pictures_are_real_pictures_of_every_chart(tmp_path):
    ops = {op: OPS[op] for op in ("gelu", "layernorm")}
    records = [*read(H200 / "check.json")[:40], *synthetic_benches(ops=ops, sizes=(10, 12, 14)), synthetic_machine()]
    report(records, tmp_path / "page.html", pictures=tmp_path / "pictures")
    names = {p.name for p in (tmp_path / "pictures").iterdir()}
    each = [
        "verdicts",
        "runtime-gelu",
        "runtime-layernorm",
        "roofline",
        "copy",
        "scaling-gelu",
        "scaling-layernorm",
        "heatmap-layernorm",
        "samples-gelu",
        "samples-layernorm",
    ]
    assert names == {f"{n}.{kind}" for n in each for kind in ("svg", "png")}
    for path in (tmp_path / "pictures").iterdir():
        if path.suffix == ".svg":
            drawing = ElementTree.parse(path).getroot()
            assert drawing.tag.endswith("svg") and len(list(drawing.iter())) > 50
        else:
            head = path.read_bytes()[:24]
            assert head[:8] == b"\x89PNG\r\n\x1a\n"
            wide, high = struct.unpack(">II", head[16:24])
            assert wide > 500 and high > 150


def test_the_room_is_its_verb(tmp_path):
    import assay

    assert assay.report(SOME[:1], tmp_path / "page.html").exists()


def test_a_notebook_shows_records_as_a_table():
    table = Records(SOME)._repr_html_()
    assert table == html_table(SOME) and offline(table + "default-src 'none'") and "<script" not in table
    found = Outline()
    found.feed(table)
    assert not found.wrong and not found.open and found.tags.count("tr") == len(SOME) + 1


# ---- the command


def call(*arguments):
    """As the command would call it; the verb's own wiring is tested with the rest of the command line."""
    import typer
    from typer.testing import CliRunner

    from assay.cli.report import report as verb

    app = typer.Typer()
    app.command()(verb)
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.mark.slow
def test_report_from_documents(tmp_path):
    for name, records in (("a", SOME[:8]), ("b", SOME[8:])):
        (tmp_path / f"{name}.json").write_text(json.dumps(document(records)))
    both = ["--from", tmp_path / "a.json", "--from", tmp_path / "b.json", "--out", tmp_path / "p.html"]
    done = call(*both, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"page": str(tmp_path / "p.html"), "pictures": [], "records": len(SOME)}
    assert offline((tmp_path / "p.html").read_text())
    done = call(*both, "--run", "2000")
    assert done.exit_code == 0 and f"{sum(r.run.startswith('2000') for r in SOME)} records" in done.stdout


def test_report_from_the_store(tmp_path):
    from assay.store import open_store

    where = tmp_path / "records.sqlite"
    with open_store(where) as store:
        for record in SOME:
            store.add(record)
    done = call("--store", where, "--out", tmp_path / "p.html", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["removed"] == 3, "the library has no such kernels"
    assert told["records"] + told["removed"] == len(rows.latest(SOME))
    done = call("--store", where, "--out", tmp_path / "p.html", "--run", "synthetic", "--json")
    assert json.loads(done.stdout)["records"] == 1


def test_nothing_to_report_says_what_to_do(tmp_path):
    from assay.store import open_store

    open_store(tmp_path / "empty.sqlite").close()
    (tmp_path / "empty.json").write_text(json.dumps(document([])))
    (tmp_path / "bad.json").write_text("[]")
    for arguments, says in (
        (("--store", tmp_path / "empty.sqlite"), "assay bench"),
        (("--from", tmp_path / "empty.json"), "assay check"),
        (("--from", tmp_path / "bad.json"), "not a document"),
        (("--from", tmp_path / "none.json"), "cannot read"),
    ):
        done = call(*arguments, "--out", tmp_path / "p.html")
        assert isinstance(done.exception, UsageError) and says in str(done.exception)
    assert not (tmp_path / "p.html").exists()
