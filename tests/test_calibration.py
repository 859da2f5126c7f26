"""The limit for values is safe and sharp: honest evaluations pass, planted errors are found, the tables are today's."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch

from assay import library
from assay.check import evaluations, judge, oracle
from assay.dtype import dtype
from assay.inputs import generate
from assay.selftest import calibration
from assay.workload import parse

ROOT = Path(__file__).parents[1]
RECORDS = json.loads((ROOT / "results" / "cpu" / "calibration.json").read_text())["calibrations"]


@pytest.mark.parametrize(
    ("name", "number"), [pytest.param("mean_var", "fp32", marks=pytest.mark.whole), ("silu", "bf16")]
)
def test_honest_evaluations_pass_and_planted_errors_are_found(name, number):
    found = calibration.measure(library.ops()[name], dtype(number), runs=6)
    assert found.honest == 48 and found.judged > 500
    assert found.alarms == ()
    assert found.found == 1
    floors = [found.floors[share] for share in calibration.SHARES]
    assert floors == sorted(floors), "an error on fewer elements is harder to find"


@pytest.mark.parametrize("name", ["transpose", pytest.param("mx_dequantize", marks=pytest.mark.whole)])
def test_one_flipped_bit_is_found_where_data_is_only_moved(name):
    assert calibration.measure(library.ops()[name], dtype("bf16"), runs=20).found == 1


def _variance(lanes: int):
    """A verdict on variances of one row of widely spread values, summed by so many accumulators."""
    op = library.ops()["mean_var"]
    workload = parse("rows=1,cols=33463,dtype=fp32,values=wide", op)
    inputs = generate(op, workload)
    truth, plain = oracle.oracle(op, workload, inputs), oracle.baseline(op, workload, inputs)
    x = torch.nn.functional.pad(inputs["x"] - truth.exact["out"].float()[:, None], (0, -33463 % lanes))
    total = torch.zeros(1, lanes)
    for part in x.square().view(1, -1, lanes).unbind(1):
        total += part
    while total.shape[1] > 1:
        total = total[:, ::2] + total[:, 1::2]
    outputs = {**plain, "var": total[:, 0] / 33463}
    return judge.judge(outputs, truth, plain, {}).finding


def test_lanes_may_lose_what_adding_in_order_loses_but_not_one_accumulator():
    assert _variance(128) is None
    found = _variance(1)
    assert found is not None and found.detector == "values"


@pytest.mark.parametrize("how", list(evaluations.variations())[::7], ids=str)
def test_an_evaluation_differs_from_pytorch_and_is_as_good(how):
    op = library.ops()["layernorm"]
    workload = parse("rows=33,cols=1000,dtype=fp32", op)
    inputs = generate(op, workload)
    truth = oracle.oracle(op, workload, inputs)
    made = evaluations.evaluate(op, workload, inputs, how)["out"].double()
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
