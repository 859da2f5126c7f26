"""The reason of a failure says which inputs behind a wrong element are NaN or infinite; few inputs are written out."""

import pytest
import torch

from assay import Axis, Tensor, inputs
from assay.catalog import library
from assay.check import judge, oracle
from assay.check.explaining import with_inputs
from assay.check.special_inputs import written
from assay.op import op
from assay.workload import Workload

NAN, INF = float("nan"), float("inf")


def reason(op, sizes, put, wrong):
    """The reason of the failure, after `put` has changed the inputs, of the right outputs as `wrong` changes them."""
    workload = Workload.of(op, f"{sizes},dtype=fp32")
    drawn = inputs.generate(workload)
    put(**drawn)
    truth = oracle.oracle(workload, drawn)
    outputs = {n: truth.exact[n].to(workload.dtype_of(t).torch, copy=True).contiguous() for n, t in op.outputs.items()}
    wrong(outputs["out"])
    found = judge.judge(outputs, judge.Measures(truth, oracle.baseline(workload, drawn), {})).finding
    assert found
    return found.what


@pytest.mark.parametrize(("value", "shown"), [(NAN, "nan"), (-INF, "-inf")])
def test_the_input_of_the_element_that_is_wrong_is_named(value, shown):
    def put(x):
        x[[2, 5]] = value

    what = reason(library.ops()["gelu"], "n=8", put, lambda out: out[2].fill_(1 if value == -INF else 0))
    assert what.endswith(f"; `x` is {shown} there")


def test_in_an_op_of_rows_the_values_of_that_row_are_counted():
    def put(x):
        x[1, 3], x[1, 4], x[0, 0] = NAN, -INF, NAN

    what = reason(library.ops()["softmax"], "rows=3,cols=6", put, lambda out: out[1].fill_(0))
    counts = "`x` has 1 NaN and 1 infinite values where rows is 1"
    assert what == f"`out`[1, 0] is 0, must be nan (6 such elements); {counts}"


def test_of_an_input_that_all_rows_share_all_values_are_counted():
    def put(x, weight, **others):
        weight[2] = NAN

    what = reason(library.ops()["layernorm"], "rows=2,cols=4", put, lambda out: out.fill_(0))
    assert what.endswith("`weight` has 1 NaN value")


def test_a_wrong_integer_is_explained_by_them_too():
    axes = {"rows": Axis(typical=8), "cols": Axis(typical=8)}
    outputs = {"out": Tensor("rows", dtype="int64")}

    @op(axes=axes, inputs={"x": Tensor("rows", "cols")}, outputs=outputs, dtypes=("fp32",))
    def missing_values(x):
        return x.isnan().sum(-1)

    def put(x):
        x[1, 3] = NAN

    what = reason(missing_values, "rows=2,cols=5", put, lambda out: out[1].fill_(0))
    assert "must be 1" in what and what.endswith("; `x` has 1 NaN value")


def test_where_the_inputs_are_finite_nothing_is_added():
    def put(x):
        x[3] = NAN

    what = reason(library.ops()["gelu"], "n=8", put, lambda out: out[4].fill_(NAN))
    assert what.endswith("(1 such element)")


def test_few_inputs_are_written_out_with_all_their_digits():
    x, index = torch.tensor([[0.1, NAN]]), torch.tensor([3, -1])
    few = {"x": x, "scale": torch.tensor(2.0), "index": index, "keep": torch.tensor([True]), "none": torch.empty(0, 2)}
    words = "x = [[0.100000001, nan]], scale = 2, index = [3, -1], keep = [True], none = []"
    assert written(few) == words
    assert written({"x": torch.tensor([0.1, -0.0]).bfloat16()}) == "x = [0.100097656, -0]"
    assert written({"x": torch.tensor([448.0]).to(torch.float8_e4m3fn)}) == "x = [448]"
    assert written({"x": torch.ones(8)}) and not written({"x": torch.ones(1), "y": torch.ones(9)})
    wrong = judge.Finding("values", "`out` is 3, must be 4", details=("  error   1 rounding unit",))
    assert with_inputs(wrong, few).details == (f"  input   {words}", *wrong.details)
    for other in (judge.Finding("unwritten", "all"), judge.Finding("stale", "again")):
        assert with_inputs(other, few) == other, "the inputs do not explain it"
