"""The page people look at: offline, whole for any set of records, drawn, filtered and hovered in a real browser."""

import json
import random
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

ROOT = Path(__file__).parents[1]
H200 = ROOT / "results" / "h200"

# ---- records made up for these tests: seeded, and every one says "synthetic" where a device would stand

OF_KERNELS = [f for f in FIGURES if f.name not in ("models", "training", "compile", "attention")]
"""The others are drawn from records of models, in their own tests."""
GPU = "Synthetic GPU"
MADE = {
    "assay": "0.0",
    "commit": "0000000+",
    "python": "3.12.3",
    "system": "Linux x86_64",
    "cpu": "Synthetic CPU",
    "cores": 16,
    "gpu": GPU,
    "driver": "000.00",
    "packages": {"torch": "0.0", "triton": "0.0"},
    "time": "2000-01-01T00:00:00Z",
    "seed": 0,
}
OPS = {"gelu": (1, 12), "layernorm": (2, 8), "softmax": (2, 6), "silu": (1, 6), "conv2d": (2, 220)}
"""Op: its axes, its operations per element."""
WAYS = {"torch": 1.0, "inductor": 0.72, "triton": 0.61, "cuda": 0.58, "cuda:naive": 1.4, "cupy": 0.66, "numba": 0.93}
"""Kernel: its time as a share of the baseline's."""
FEW = ("torch", "triton", "cuda", "cuda:naive", "numba")
STREAM, LAUNCH = 4.2e12, 2.2e-6


def synthetic_benches(seed=0, ops=OPS, ways=WAYS, sizes=(10, 12, 14, 16), dtypes=("bf16", "fp32"), rounds=6):
    dice = random.Random(seed)
    for op, (axes, work) in ops.items():
        for dtype in dtypes:
            for size in [(down, across) for down in sizes for across in (sizes[:3] if axes == 2 else (12,))]:
                n = 2 ** sum(size)
                shape = f"rows={2 ** size[0]},cols={2 ** size[1]}" if axes == 2 else f"n={n}"
                moved = 2 * n * (2 if dtype == "bf16" else 4)
                copy = LAUNCH + moved / STREAM
                baseline = None
                for way, share in ways.items():
                    true = LAUNCH + copy * 1.85 * share * dice.uniform(0.95, 1.08)
                    samples = [
                        [true * off * dice.lognormvariate(0, 0.004) for _ in range(8)]
                        for off in (dice.gauss(1, 0.003) for _ in range(rounds))
                    ]
                    flat = sorted(s for one in samples for s in one)
                    median, low, high = (flat[int(len(flat) * q)] for q in (0.5, 0.3, 0.7))
                    baseline = baseline or median
                    faster = baseline / median
                    yield Record(
                        "bench",
                        f"{op}/{way}",
                        f"{shape},dtype={dtype}",
                        Status.PASS,
                        f"{median * 1e6:.1f} µs",
                        "20000101-000000-synthe",
                        evidence={
                            "device": "cuda",
                            "method": "events on a held stream",
                            "rounds": rounds,
                            "converged": True,
                            "hot": {"median": median * 0.8, "samples": [[s * 0.8 for s in one] for one in samples]},
                            "call": {"median": median + 9e-6, "samples": [[s + 9e-6 for s in one] for one in samples]},
                            "baseline": f"{op}/torch",
                            "speedup": {"median": faster, "interval": [faster * 0.99, faster * 1.01]},
                            "bytes": moved,
                            "operations": n * work,
                            "gbps": moved / median / 1e9,
                            "copy": {"median": copy, "interval": [copy * 0.99, copy * 1.01]},
                            "share_of_copy": copy / median,
                            "roofline": {
                                "bound": "memory",
                                "seconds": moved / STREAM,
                                "share": moved / STREAM / median,
                                "model": f"{GPU}, measured",
                                "measured": True,
                            },
                            "launches": 1,
                        },
                        replay=f"assay bench {op}/{way} --workload {shape},dtype={dtype}",
                        source={"file": f"assay/library/{op}/{way}.py", "line": 7, "hash": "0" * 16},
                        provenance=MADE,
                        seconds=1.5,
                        median=median,
                        interval=(low, high),
                        samples=samples,
                    )


def synthetic_machine():
    def figure(value, unit, published=None, where="", clock=1980.0):
        return {
            "value": value,
            "unit": unit,
            "low": value * 0.99,
            "high": value * 1.01,
            "clock_mhz": clock,
            "published": published,
            "where": where,
        }

    figures = {
        "dram.copy": figure(4.2e12, "B/s", 4.8e12, "made up"),
        "dram.read": figure(4.10e12, "B/s", 4.8e12, "made up"),
        "l2.read": figure(9.1e12, "B/s"),
        "shared.read": figure(3.1e13, "B/s"),
        "latency.l2": figure(251.0, "cycles", [219, 281], "made up"),
        "latency.dram": figure(640.0, "cycles"),
        "vector.fp32": figure(6.0e13, "op/s", 6.7e13, "made up"),
        "tensor.mma.bf16": figure(6.6e14, "op/s"),
        "tensor.wgmma.bf16": figure(8.0e14, "op/s", 9.89e14, "made up"),
        "launch.stream": figure(2.4e-6, "s", clock=None),
        "clock.mma": figure(1.755e9, "Hz", 1.98e9, "made up"),
    }
    model = {"device": GPU, "source": "measured", "run": "synthetic", "time": MADE["time"], "figures": figures}
    return Record("machine", "machine", "", Status.PASS, "synthetic", "synthetic", {"model": model}, provenance=MADE)


def failed(record):
    reason = "guard: it wrote outside its tensors: 0 bytes after `out` <script>alert(1)</script> & more"
    return replace(record, status=Status.FAIL, reason=reason, median=None, interval=None, samples=None)


def everything():
    checks = read(H200 / "check.json")
    broken = [
        failed(next(r for r in checks if r.kernel == "gelu/triton")),
        replace(next(r for r in checks if r.kernel == "sum/numba"), status=Status.COMPILED, reason="no GPU here"),
    ]
    kept = [r for r in checks if (r.kernel, r.workload) not in {(b.kernel, b.workload) for b in broken}]
    benches = list(synthetic_benches(sizes=(10, 12, 14), rounds=4, ways={w: WAYS[w] for w in FEW}))
    return [*broken, *kept, *read(H200 / "selftest.json"), *benches[1:], failed(benches[0]), synthetic_machine()]


# ---- units


@given(st.floats(1e-12, 9e17), st.integers(2, 6))
def test_a_scaled_number_says_its_value_with_as_many_digits_as_asked(value, digits):
    told = units.scaled(value, "s", digits)
    power = {prefix: power for power, prefix in units.PREFIXES.items()}[told.unit.removesuffix("s")]
    assert float(told.number) * 10.0**power == pytest.approx(value, rel=0.51 * 10 ** (1 - digits))
    assert 1 <= float(told.number) < 1000
    assert len(told.number.replace(".", "")) == max(digits, len(told.number.partition(".")[0]))


@pytest.mark.parametrize(
    ("value", "unit", "says"),
    [
        (1.234e-5, "s", "12.34 µs"),
        (999.96e-9, "s", "1.000 µs"),
        (4.2e12, "B/s", "4.200 TB/s"),
        (251.0, "cycles", "251.0 cycles"),
        (0, "s", "0 s"),
        (None, "s", "–"),
        (float("nan"), "s", "–"),
        (-2.5e-3, "s", "-2.500 ms"),
    ],
)
def test_units(value, unit, says):
    assert units.si(value, unit).replace("\u00a0", " ") == says


@given(st.floats(1e-9, 10), st.floats(0, 0.2), st.floats(0, 0.2))
def test_an_interval_is_told_in_the_unit_of_its_median(value, below, above):
    text = units.between(value, (value * (1 - below), value * (1 + above)), "s").replace("\u00a0", " ")
    number, low, high = (float(n) for n in re.fullmatch(r"([\d.]+) \S*s \(([\d.]+) – ([\d.]+)\)", text).groups())
    assert low / number == pytest.approx(1 - below, rel=2e-3) and high / number == pytest.approx(1 + above, rel=2e-3)


@given(st.dictionaries(st.sampled_from(["n", "rows", "cols", "k"]), st.integers(0, 2**40), min_size=1))
def test_the_axes_of_a_printed_workload_come_back(sizes):
    text = ",".join(f"{k}={v}" for k, v in sizes.items()) + ",eps=1e-05,dtype=bf16,seed=7,offset=1"
    assert rows.axes(text) == sizes
    assert "dtype" not in rows.shape(text)


# ---- the page, without a browser


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


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return report(everything(), tmp_path_factory.mktemp("report") / "deep" / "page.html", title="A <b>title</b> & more")


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
    checked = len({r.kernel for r in read(H200 / "check.json")})
    assert f"{checked - 3} of {checked} kernels pass; 2 failed, 1 compiled only." in page
    assert page.index("What failed") < page.index('data-figure="verdicts"') < page.index('id="provenance"')
    assert "580.159.04" in page and "Synthetic GPU" in page and "c65a2fb+" in page
    # What a record says stays text.
    assert "<script>alert(1)" not in page and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
    assert "A &lt;b&gt;title&lt;/b&gt; &amp; more" in page


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


SOME = everything()
SOME = [
    *SOME[:6],
    *[r for r in SOME if r.verb == "selftest"][:3],
    *[r for r in SOME if r.verb == "bench"][:60:6],
    *SOME[-3:],
]


def subsets(draw):
    """Any records, some of them stripped of what a chart would like to have."""
    strip = st.sampled_from(["", "evidence", "provenance", "workload", "samples", "median", "kernel"])
    empty = {"evidence": {}, "provenance": {}, "workload": "", "samples": None, "median": None, "kernel": "lone"}

    def stripped(pair):
        record, what = pair
        return replace(record, **{what: empty[what]}) if what else record

    return draw(st.lists(st.tuples(st.sampled_from(SOME), strip).map(stripped), max_size=12))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.composite(subsets)())
def test_any_set_of_records_gives_a_whole_page(records):
    page = render(rows.latest(records), title="Assay report")
    assert offline(page)
    outline(page)


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
    assert json.loads(done.stdout)["records"] == len(rows.latest(SOME))
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


# ---- in a browser


@pytest.fixture
def visit(browser):
    """Open a page; at the end nothing may have been complained of or asked from outside."""
    trouble, contexts = [], []

    def go(path, width=1280, scheme="light"):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: trouble.append(str(e)))
        page.on(
            "request", lambda r: trouble.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None
        )
        page.goto(path.as_uri())
        drawn(page, 1)
        return page

    yield go
    for context in contexts:
        context.close()
    assert not trouble


def drawn(page, turn):
    page.wait_for_function(f"Number(document.documentElement.dataset.drawn) >= {turn}", timeout=30_000)


@pytest.mark.browser
def test_every_chart_is_drawn_and_the_page_fits(whole, visit):
    page = visit(whole)
    for figure in OF_KERNELS:
        marks = page.locator(f"#{figure.name} svg [role=graphics-symbol]").count()
        assert marks > 5, f"{figure.name}: {marks} marks"
        box = page.locator(f"#{figure.name} svg.marks").bounding_box()
        room = page.locator(f"#{figure.name} .scroll").bounding_box()
        assert box["width"] <= room["width"] + 1, f"{figure.name} is wider than a laptop's page"
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    narrow = visit(whole, width=420)
    assert narrow.evaluate("document.documentElement.scrollWidth") == 420


@pytest.mark.browser
def test_filtering_changes_tables_and_charts(whole, visit):
    page = visit(whole)
    shown = "#every tbody tr:not([hidden])"
    everything_shown = page.locator(shown).count()
    before = page.locator("#copy svg [role=graphics-symbol]").count()
    page.locator("select[name=op]").select_option("gelu")
    drawn(page, 2)
    assert 0 < page.locator(shown).count() < everything_shown
    assert all(op == "gelu" for op in page.locator(shown).evaluate_all("rows => rows.map(r => r.dataset.op)"))
    assert 0 < page.locator("#copy svg [role=graphics-symbol]").count() < before
    assert "conv2d" not in page.locator("#verdicts svg").inner_html()
    assert page.locator("#runtime select option").evaluate_all("o => o.every(x => x.textContent.startsWith('gelu'))")
    page.locator("input[name=text]").fill("no such thing")
    drawn(page, 3)
    assert page.locator(shown).count() == 0 and page.locator("#verdicts .empty").is_visible()
    page.get_by_role("button", name="Clear").click()
    drawn(page, 4)
    assert page.locator(shown).count() == everything_shown
    assert page.locator("#copy svg [role=graphics-symbol]").count() == before


@pytest.mark.browser
def test_a_menu_shows_another_case(whole, visit):
    page = visit(whole)
    first = page.locator("#runtime svg").inner_html()
    page.locator("#runtime select").select_option(index=3)
    page.wait_for_function("old => document.querySelector('#runtime svg').innerHTML !== old", arg=first)


@pytest.mark.browser
def test_hovering_says_what_a_mark_is(whole, visit):
    page = visit(whole)
    for figure, words in (
        ("roofline", ("Kernel", "Workload", "Bandwidth", "B/s", "%")),
        ("verdicts", ("Covers", "checks")),
    ):
        page.locator(f"#{figure}").scroll_into_view_if_needed()
        page.locator(f"#{figure} svg .mark-symbol path[role=graphics-symbol]").last.hover(force=True)
        tip = page.locator("#vg-tooltip-element.visible")
        tip.wait_for(timeout=5000)
        assert all(word in tip.inner_text() for word in words), tip.inner_text()


@pytest.mark.browser
def test_light_and_dark(whole, visit):
    """As the system is, and as the reader wants: page and charts together."""
    ink = "getComputedStyle(document.querySelector('#runtime svg .role-axis-label text')).fill"
    ground = "getComputedStyle(document.body).backgroundColor"
    page = visit(whole, scheme="dark")
    dark = page.evaluate(ink), page.evaluate(ground)
    page.get_by_role("button", name="Light").click()
    drawn(page, 2)
    light = page.evaluate(ink), page.evaluate(ground)
    assert light[0] != dark[0] and light[1] != dark[1]
    other = visit(whole, scheme="light")
    assert (other.evaluate(ink), other.evaluate(ground)) == light


@pytest.mark.browser
def test_tables_sort_and_everything_is_reached_by_keyboard(whole, visit):
    page = visit(whole)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    heading = page.locator("#fastest thead button", has_text="time")
    heading.focus()
    page.keyboard.press("Enter")
    times = "cells => cells.map(c => Number(c.dataset.sort))"
    up = page.locator("#fastest tbody td:nth-child(4)").evaluate_all(times)
    page.keyboard.press("Enter")
    down = page.locator("#fastest tbody td:nth-child(4)").evaluate_all(times)
    assert up == sorted(up) and down == up[::-1] and len(set(up)) > 1
    unnamed = "e => e.filter(x => !(x.textContent.trim() || x.ariaLabel || x.labels?.length)).length"
    assert page.locator("button, select, input, summary, a").evaluate_all(unnamed) == 0


@pytest.mark.browser
@pytest.mark.parametrize("keep", [{"check"}, {"bench"}, {"selftest"}, {"machine"}], ids=str)
def test_a_partial_page_works_too(tmp_path, visit, keep):
    path = report([r for r in SOME if r.verb in keep], tmp_path / "page.html")
    assert visit(path).locator("h1").inner_text()
