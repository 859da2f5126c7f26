"""Evidence is typed: what a verb writes is what is read back, from this version and from records of schema 1."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.bench.evidence import BenchEvidence, Clocks, Speedup, Times
from assay.check.evidence import CheckEvidence, OutputError
from assay.evidence import figures
from assay.inspect.evidence import Block, InspectEvidence
from assay.machine.evidence import MachineEvidence
from assay.models.studies.compile.evidence import CompileEvidence
from assay.models.studies.infer.evidence import InferEvidence
from assay.models.studies.train.evidence import TrainEvidence
from assay.record import VERBS, Record, Status, document, parsed, read
from assay.report.export import KINDS, flat
from assay.report.schema import EVIDENCE, every_figure, schema

ROOT = Path(__file__).parents[1]
MODELS = dict.fromkeys(("minilm", "minilm-mx", "mnist-cnn", "mnist-cnn-ln"), InferEvidence)
MODELS |= {"compile": CompileEvidence, **dict.fromkeys(("epochs", "envelope", "training"), TrainEvidence)}
H200 = ROOT / "results" / "h200"
POSITIVE = st.floats(1e-9, 1e9)


def record(evidence, verb="bench", **more):
    return Record(verb, "gelu/triton", "n=8,dtype=fp32", Status.PASS, "", evidence=evidence.to_dict(), **more)


@given(
    st.builds(
        BenchEvidence,
        device=st.sampled_from(["cuda", "cpu"]),
        hot=st.none() | st.builds(Times, POSITIVE, st.tuples(POSITIVE, POSITIVE), st.lists(st.lists(POSITIVE))),
        speedup=st.none() | st.builds(Speedup, POSITIVE, st.none() | st.tuples(POSITIVE, POSITIVE)),
        clocks=st.none() | st.builds(Clocks, st.none() | POSITIVE, throttle=st.none() | st.lists(st.text())),
        bytes=st.none() | st.integers(0, 1 << 62),
        converged=st.none() | st.booleans(),
        parameters=st.none() | st.dictionaries(st.text(), st.integers()),
    )
)
def test_what_is_written_is_read_back(evidence):
    written = json.loads(json.dumps(record(evidence).to_dict()))
    (again,) = parsed({"records": [written]})
    assert BenchEvidence.of(again) == evidence


def test_a_field_that_is_not_what_it_should_be_is_as_if_it_were_not_there():
    good = BenchEvidence(gbps=1.5, bytes=8, hot=Times(1.0, (0.9, 1.1)))
    wrong = {
        "gbps": "fast",
        "hot": {"median": 1.0},
        "speedup": [2],
        "unknown": 1,
        "tflops": float("inf"),
    }
    found = BenchEvidence.of(replace(record(good), evidence=good.to_dict() | wrong))
    assert found == BenchEvidence(bytes=8)


def test_what_there_is_nothing_to_say_of_is_left_out():
    assert BenchEvidence(device="cpu", bytes=0).to_dict() == {"device": "cpu", "bytes": 0}
    assert CheckEvidence(errors={"out": OutputError(0.5)}).to_dict()["errors"]["out"].keys() >= {"share", "ratio"}


@pytest.mark.parametrize(
    "file",
    [
        "check.json",
        "examples.json",
        "bench.json",
        "machine.json",
        "selftest.json",
        "mx.json",
        *(f"models/{n}.json" for n in MODELS),
    ],
)
def test_committed_records_load_with_all_they_say(file):
    """Those of schema 1 too: nothing that a record says under a name we know is lost on reading."""
    for one in read(H200 / file):
        kind = MODELS.get(Path(file).stem) or EVIDENCE[one.verb][0]
        typed = kind.of(one).to_dict()
        known = {name: value for name, value in one.evidence.items() if name in kind.__dataclass_fields__}
        lost = {name for name, value in known.items() if value not in (None, "", []) and name not in typed}
        assert not lost, (one.kernel, lost)


def test_an_empty_part_that_is_not_left_to_a_default_is_written():
    evidence = InspectEvidence(blocks=[Block(0, 0, 16, (), 0)])
    assert evidence.to_dict() == {"blocks": [{"number": 0, "start": 0, "end": 16, "follows": [], "loop_depth": 0}]}
    assert InspectEvidence.of(record(evidence, "inspect")) == evidence


def test_every_verb_with_evidence_is_one_that_records_name():
    assert set(VERBS) == {*EVIDENCE, "doctor", "list"}


def test_figures_are_named_once_and_explained():
    for verb, those in every_figure().items():
        assert len({f.id for f in those}) == len(those), verb
        assert all(f.name and f.description and f.kind in (int, float, str) for f in those), verb
    columns = [f.column for those in every_figure().values() for f in those if f.column]
    assert len(set(columns)) == len(columns)


def test_csv_has_the_figures_of_bench_and_check_with_their_units():
    evidence = BenchEvidence(gbps=12.5, hot=Times(2e-6, (1e-6, 3e-6)), launches=1.0, speedup=Speedup(2.0, (1.5, 2.5)))
    row = flat(record(evidence, median=4e-6, interval=(3e-6, 5e-6)))
    assert list(row) == list(KINDS)
    assert row["median_s"] == 4e-6 and row["high_s"] == 5e-6 and row["bandwidth_gb_per_s"] == 12.5
    assert (row["hot_median_s"], row["hot_low_s"], row["hot_high_s"]) == (2e-6, 1e-6, 3e-6)
    assert (row["speedup"], row["speedup_low"], row["speedup_high"]) == (2.0, 1.5, 2.5)
    assert row["launches"] == 1.0 and row["threads"] is None and row["op"] == "gelu" and row["dtype"] == "fp32"
    assert flat(record(CheckEvidence(workloads=7), "check"))["workloads"] == 7


def test_a_figure_finds_its_value_and_nothing_else():
    low = next(f for f in figures(BenchEvidence) if f.id == "hot.interval.0")
    assert low.value({"hot": {"interval": [1, 2]}}) == 1.0
    for other in (
        {},
        {"hot": 3},
        {"hot": {"interval": []}},
        {"hot": {"interval": ["a"]}},
        {"hot": {"interval": [True]}},
    ):
        assert low.value(other) is None


def test_documents_follow_the_schema_in_the_docs():
    import jsonschema  # a development dependency: machines with a GPU alone need not have it

    spec = importlib.util.spec_from_file_location("schema_tool", ROOT / "tools" / "schema.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    kept = (ROOT / "docs" / "record.schema.json").read_text()
    assert kept == json.dumps(schema(), indent=1) + "\n", "run `python tools/schema.py`"
    assert tool.page() == (ROOT / "docs" / "records.md").read_text(), "run `python tools/schema.py`"
    rule = jsonschema.Draft202012Validator(schema())
    good = [
        record(BenchEvidence(gbps=1.0, hot=Times(1.0, (0.5, 2.0), [[1.0]]))),
        record(CheckEvidence(workloads=3, errors={"out": OutputError(0.25)}), "check"),
        record(InspectEvidence("sm_90a", "gelu"), "inspect"),
        record(MachineEvidence(samples=[1.0]), "machine"),
    ]
    written = json.loads(json.dumps(document(good, verb="bench", run="r")))
    rule.validate(written)
    written["records"][0]["evidence"]["gbps"] = "fast"
    with pytest.raises(jsonschema.ValidationError):
        rule.validate(written)
