"""The limit for values is safe and sharp: honest evaluations pass, planted errors are found, the tables are today's."""

import importlib.util
import json
from pathlib import Path

import pytest

from assay.catalog import library
from assay.check import evaluations, judge, oracle
from assay.dtype import dtype
from assay.inputs import generate
from assay.selftest import calibration
from assay.workload import Workload

ROOT = Path(__file__).parents[2]
RECORDS = json.loads((ROOT / "results" / "cpu" / "calibration.json").read_text())["calibrations"]


@pytest.mark.parametrize(
    ("name", "number"), [pytest.param("mean_var", "fp32", marks=pytest.mark.whole), ("silu", "bf16")]
)
def test_honest_evaluations_pass_and_planted_errors_are_found(name, number):
    found = calibration.measure(library.ops()[name], dtype(number), runs=6)
    assert found.honest == len(list(evaluations.variations(dtype(number)))) > 50 and found.judged > 500
    assert found.alarms == ()
    assert found.found == 1
    floors = [found.floors[share] for share in calibration.SHARES]
    assert floors == sorted(floors), "an error on fewer elements is harder to find"


@pytest.mark.parametrize("name", ["transpose", pytest.param("mx_dequantize", marks=pytest.mark.whole)])
def test_one_flipped_bit_is_found_where_data_is_only_moved(name):
    assert calibration.measure(library.ops()[name], dtype("bf16"), runs=20).found == 1


def _judged(name: str, asked: str, how: evaluations.Variation, change=lambda x: x):
    """The verdict on an op's reference in float32, evaluated so, on values that `change` may disturb."""
    op = library.ops()[name]
    workload = Workload.of(op, asked)
    inputs = generate(workload)
    truth, plain = oracle.oracle(workload, inputs), oracle.baseline(workload, inputs)
    seen = {n: change(v.clone()) for n, v in inputs.items()}
    return judge.judge(evaluations.evaluate(workload, seen, how), judge.Measures(truth, plain, {}))


LONG = "rows=5,cols=70001,dtype=fp32,seed=7"
SUMS = ["mean_var", "rmsnorm", "softmax", pytest.param("layernorm", marks=pytest.mark.whole)]


@pytest.mark.parametrize("values", ["normal", "wide", "outlier", "constant", "sorted"])
@pytest.mark.parametrize("name", SUMS)
def test_one_accumulator_for_a_long_row_is_no_mistake(name, values):
    asked = f"{LONG},values={values}" if values != "normal" else LONG
    assert _judged(name, asked, evaluations.Variation("serial", products="fused")).finding is None
    assert _judged(name, asked, evaluations.Variation("lanes 32", division="reciprocal")).finding is None


def test_a_pass_says_that_one_accumulator_would_lose_as_much():
    said = _judged("rmsnorm", f"{LONG},values=outlier", evaluations.Variation("serial", products="fused"))
    assert said.errors[0].admitted and said.errors[0].ratio > 8
    said = _judged("rmsnorm", f"{LONG},values=outlier", evaluations.Variation("pairwise"))
    assert not said.errors[0].admitted


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("sum", "n=70001,dtype=fp32,seed=8,values=constant"),
        ("sum", "n=70001,dtype=fp32,seed=8,values=ties"),
        ("euclidean_distance", f"{LONG},values=ties"),
    ],
)
def test_an_element_left_out_of_a_long_row_is_seen_where_every_order_is_exact(name, asked):
    def without_one(x):
        x[..., (x.reshape(-1, x.shape[-1])[0] != 0).nonzero()[-1]] = 0
        return x

    serial = evaluations.Variation("serial")
    assert _judged(name, asked, serial).finding is None
    found = _judged(name, asked, serial, without_one).finding
    assert found is not None and found.detector == "values"


@pytest.mark.parametrize("how", list(evaluations.variations(dtype("bf16")))[::7], ids=str)
def test_an_evaluation_differs_from_pytorch_and_is_as_good(how):
    op = library.ops()["layernorm"]
    workload = Workload.of(op, "rows=33,cols=1000,dtype=fp32")
    inputs = generate(workload)
    truth = oracle.oracle(workload, inputs)
    made = evaluations.evaluate(workload, inputs, how)["out"].double()
    assert (made - truth.exact["out"]).abs().max() < 1e-5


def test_the_table_in_the_docs_is_made_of_the_records():
    spec = importlib.util.spec_from_file_location("calibration_tables", ROOT / "tools" / "calibration.py")
    assert spec is not None and spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    page = tables.PAGE.read_text()
    assert tables.page(page, tables.RECORDS) == page, "run `python tools/calibration.py`"


def test_the_records_show_what_is_promised():
    known = {(r["op"], r["dtype"]) for r in RECORDS}
    assert known == {(n, d) for n, op in library.ops().items() for d in op.dtypes if not op.random}
    assert sum(r["honest"] for r in RECORDS) >= 3000
    assert [r["alarms"] for r in RECORDS if r["alarms"]] == []
    assert [(r["op"], r["dtype"]) for r in RECORDS if r["found"] < 0.99] == []
