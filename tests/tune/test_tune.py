"""The whole verb on the CPU: each configuration in a process of its own, judged, timed and kept."""

import json

import pytest

import assay as package
from assay.catalog.select import select
from assay.catalog.untuned import hash_without_space
from assay.record import Status
from assay.store import open_store
from assay.store.tuned import TunedRecords, shape_class
from assay.tune import measured
from assay.tune.evidence import TuneEvidence
from assay.workload import Workload

SETTINGS = {"workload": "n=40000,dtype=fp32", "workloads": 2, "budget": 0.2, "threads": 1, "seconds": 6}
MINE = """
import os
import torch
from assay import kernel

WAYS = ["twice", "once", "wrong", "wrong on odd sizes", "crash", "hang", "a third left out", "right at first"]
calls = 0

@kernel("gelu", backend="torch", tune={"way": WAYS})
def gelu(x, *, out, way="twice"):
    if way == "crash":
        os.abort()
    while way == "hang":
        pass
    if way == "wrong":
        out.copy_(x)
        return
    global calls
    calls += 1
    end = x.numel() // 2 * 2 if way == "wrong on odd sizes" else x.numel()
    if way == "a third left out" or (way == "right at first" and calls > 50):
        end = x.numel() * 2 // 3
        out[end:] = x[end:]
    for _ in range(8 if way == "twice" else 1):
        torch.ops.aten.gelu.out(x[:end], out=out[:end])
    if way == "wrong on odd sizes":
        out[end:] = 0
"""


def by_way(records):
    """Records of configurations by their one tunable, and the record of the choice."""
    configurations = {r.evidence["parameters"]["way"]: r for r in records if "parameters" in r.evidence}
    return configurations, records[-1]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A kernel with right, wrong, crashing and hanging configurations, tuned once: its file, and its records."""
    folder = tmp_path_factory.mktemp("tuned")
    file = folder / "mine.py"
    file.write_text(MINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_STORE", str(folder / "records.sqlite"))
        yield file, list(package.tune(file, **SETTINGS))


@pytest.mark.slow
def test_a_wrong_configuration_that_is_faster_never_wins(tuned):
    configurations, choice = by_way(tuned[1])
    assert configurations["wrong"].failed and "values" in configurations["wrong"].reason
    assert choice.status is Status.PASS and choice.evidence["choice"]["winner"] == {"way": "once"}
    assert choice.evidence["choice"].get("gain_verdict") == "FASTER", [choice.reason, configurations["twice"].reason]
    assert choice.evidence["choice"]["gain"] > 2


@pytest.mark.slow
@pytest.mark.parametrize("way", ["a third left out", "right at first"])
def test_a_sabotaged_configuration_does_less_work_and_never_wins(tuned, way):
    """One of them is right until it has been called fifty times: what is timed is judged, too."""
    configurations, choice = by_way(tuned[1])
    assert configurations[way].failed and "values" in configurations[way].reason, configurations[way].reason
    assert configurations[way].median is None
    assert {"way": way} not in [r["parameters"] for r in choice.evidence["choice"]["ranking"]]


@pytest.mark.slow
def test_a_configuration_that_is_wrong_on_other_sizes_than_the_tuned_one_does_not_win_either(tuned):
    record = by_way(tuned[1])[0]["wrong on odd sizes"]
    assert record.failed and record.median is None and record.replay.startswith("assay check ")


@pytest.mark.slow
def test_a_crash_and_a_hang_are_records_and_the_others_go_on(tuned):
    configurations, choice = by_way(tuned[1])
    assert configurations["crash"].evidence["detector"] == "crash" and "SIGABRT" in configurations["crash"].reason
    assert configurations["hang"].evidence["detector"] == "timeout"
    right = {n for n, r in configurations.items() if r.status is Status.PASS}
    assert right == {"once", "twice"}, [configurations[n].reason for n in ("once", "twice")]
    found = choice.evidence["choice"]
    assert (found["failed"], found["measured"], found.get("lost")) == (6, 8, None)


@pytest.mark.slow
def test_a_second_run_measures_nothing_and_a_new_value_is_all_that_a_third_measures(tuned, monkeypatch):
    file, first = tuned
    measured_now = []
    judged = measured.Judge.judged

    def noted(self, configurations):
        measured_now.extend(c["way"] for c in configurations)
        return judged(self, configurations)

    monkeypatch.setattr(measured.Judge, "judged", noted)
    again = list(package.tune(file, **SETTINGS))
    assert not measured_now and sorted(map(repr, again)) == sorted(map(repr, first))
    with open_store() as store:
        assert len(list(store.records(verb="tune"))) == len(first)  # a record that is there already is not added again
    file.write_text(MINE.replace('"once", ', '"once", "new", '))
    third = list(package.tune(file, keep=False, **SETTINGS))
    file.write_text(MINE)
    assert measured_now == ["new"] and third[-1].evidence["choice"]["known"] == 8


@pytest.mark.slow
def test_what_was_tuned_is_used_for_its_shape_class_and_says_where_it_comes_from(tuned):
    file, records = tuned
    ((kernel, op),) = select([file])
    values = TunedRecords().of(kernel, Workload.of(op, "n=50000,dtype=fp32"), "cpu")
    assert values.parameters == {"way": "once"} and values.run == records[-1].run
    assert values.source.startswith("tune run ") and values.source.endswith("on n=40000,dtype=fp32")
    other = TunedRecords().of(kernel, Workload.of(op, "n=70000,dtype=fp32"), "cpu")
    assert not other.parameters and other.why_not == "it was not tuned for n=65536..131071,dtype=fp32"
    file.write_text(MINE.replace("range(8 ", "range(9 "))
    ((changed, _),) = select([file])
    assert TunedRecords().of(changed, Workload.of(op, "n=50000,dtype=fp32"), "cpu").why_not.startswith("its source")
    file.write_text(MINE)


@pytest.mark.slow
def test_bench_with_tuned_values_times_the_winner(tuned):
    file, _ = tuned
    options = {"workload": "n=45000,dtype=fp32", "rounds": 5, "budget": 0.1, "threads": 1, "against": ()}
    (record,) = package.bench(file, tuned=True, keep=False, **options)
    assert record.evidence["parameters"] == {"way": "once"} and record.evidence["tuned"].startswith("tune run ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".json", '"way": "once"'),
        (".py", "triton.Config({'way': 'once'})"),
        (".h", '#define GELU_TORCH_WAY "once"'),
    ],
)
def test_the_winner_is_written_for_other_programs(tuned, tmp_path, assay, suffix, text):
    """From the records that are there: nothing is measured again."""
    out = tmp_path / f"tuned{suffix}"
    given = ["--workload", SETTINGS["workload"], "--threads", 1, "--export", out, "--json"]
    done = assay("tune", tuned[0], *map(str, given))
    assert done.returncode == 1 and text in out.read_text()  # some configurations fail
    document = json.loads(done.stdout)
    assert document["verb"] == "tune" and len(document["records"]) == 9
    assert TuneEvidence.of(next(r for r in tuned[1] if "choice" in r.evidence)).choice.ties == []


def test_the_hash_of_a_source_leaves_out_its_space_and_nothing_else(write):
    def hashed(text):
        ((kernel, _),) = select([write("mine.py", text)])
        return hash_without_space(kernel)

    same = MINE.replace('"hang", ', '"hang", "more", ').replace("import os", "import os  # a comment")
    assert hashed(MINE) == hashed(same)
    assert hashed(MINE) != hashed(MINE.replace("range(8 ", "range(9 "))
    assert hashed(MINE) != hashed(MINE.replace('way="twice"', 'way="once"'))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("rows=4096,cols=1000,dtype=bf16", "rows=4096..8191,cols=512..1023,eps=1e-05,dtype=bf16"),
        ("rows=1,cols=2,dtype=fp32", "rows=1,cols=2..3,eps=1e-05,dtype=fp32"),
    ],
)
def test_a_shape_class_lies_between_powers_of_two(text, shape):
    from assay.catalog import library

    assert shape_class(Workload.of(library.ops()["layernorm"], text)) == shape


@pytest.mark.slow
def test_a_swap_with_tuned_values_uses_the_winner_and_says_where_it_comes_from(tuned):
    import torch

    file, records = tuned
    model = torch.nn.Sequential(torch.nn.GELU())
    x = torch.randn(40000)
    with package.swap(model, {"gelu": str(file)}, tuned=True) as report:
        assert torch.allclose(model(x), torch.nn.functional.gelu(x), atol=1e-6)
        model(torch.randn(10))
        (site,) = report.sites
        assert site.kernel == "gelu/torch" and site.calls == 2
        assert f"way=once on n=32768..65535,dtype=fp32, from tune run {records[-1].run}" in site.tuned
        assert "defaults on n=8..15,dtype=fp32: it was not tuned for" in str(report)
    with package.swap(model, {"gelu": str(file)}) as report:
        model(x)
        assert report.sites[0].tuned == ""
