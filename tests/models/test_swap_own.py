"""An op of one's own in a model: at the module that a rule names, where both compute the same."""

import pytest
import torch
from torch import nn

import assay
from assay.errors import UsageError
from swapping import everything, seeded, sites  # noqa: F401

FILE = """
import torch
from assay import Attribute, Axis, Tensor, kernel, op

@op(axes={"rows": Axis(), "cols": Axis(min=1)}, inputs={"x": Tensor("rows", "cols"), "weight": Tensor("cols")},
    outputs={"out": Tensor("rows", "cols")}, attributes={"power": Attribute(2)}, independent="rows")
def weighted(x, weight, *, power):
    return x * weight**power

@kernel("weighted", backend="torch")
def mine(x, weight, *, power, out):
    out.copy_(x * weight**power)

@op(axes={"rows": Axis(), "cols": Axis(min=1)}, inputs={"x": Tensor("rows", "cols")}, outputs={"out": Tensor("rows")})
def row_sum(x):
    return x.sum(-1)

@kernel("row_sum", backend="torch")
def summed(x, *, out):
    out.copy_(x.sum(-1))

@op(axes={"m": Axis(), "k": Axis(min=1), "n": Axis()}, inputs={"x": Tensor("m", "k"), "weight": Tensor("n", "k")},
    outputs={"out": Tensor("m", "n")})
def project(x, weight):
    return x @ weight.T

@op(axes={"n": Axis()}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n")})
def squashed(x):
    return x.tanh()

@op(axes={"n": Axis()}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n")}, independent="n")
def gelu(x):
    return 3 * x

@kernel("gelu", backend="torch")
def threefold(x, *, out):
    out.copy_(3 * x)
"""


class Weighted(nn.Module):
    def __init__(self, power=3):
        super().__init__()
        self.weight, self.power = nn.Parameter(torch.rand(8) + 0.5), power

    def forward(self, x):
        return x * self.weight**self.power


class RowSum(nn.Module):
    def forward(self, x):
        return x.sum(-1)


@pytest.fixture
def file(write):
    return str(write("mine.py", FILE))


def test_a_module_named_by_its_path_is_computed_by_the_users_kernel_and_trained_through_its_reference(file):
    model, x = nn.Sequential(nn.Linear(8, 8), Weighted()), torch.randn(2, 5, 8)
    before, want = everything(model), model(x)
    want.sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with assay.swap(model, {"1": f"{file}:weighted/torch:mine"}) as report:
        got = model(x)
        got.sum().backward()
    assert torch.equal(got, want)
    assert all(torch.allclose(p.grad, g) for p, g in zip(model.parameters(), gradients, strict=True))
    site = sites(report)["1", "weighted", "module"]
    assert (site.state, site.calls, site.backward) == ("replaced", 1, "PyTorch's, of the reference")
    model.zero_grad()
    assert everything(model)["state"] == before["state"] and type(model[1]) is Weighted


def test_a_derived_kernel_takes_a_matrix_that_the_module_holds(file):
    model, x = nn.Sequential(nn.Linear(8, 4, bias=False)), torch.randn(3, 8)
    with assay.swap(model, {"0": f"{file}:project/torch"}) as report:
        got = model(x)
    assert torch.allclose(got, model(x), atol=1e-6) and sites(report)["0", "project", "module"].calls == 1


def test_a_module_that_computes_something_else_is_left_and_the_report_says_so(file):
    model, x = nn.Sequential(RowSum(), Weighted(), nn.Tanh()), torch.randn(3, 8)
    for rule, why in (
        ({"2": f"{file}:row_sum/torch:summed"}, "Tanh computes something else than row_sum"),
        ({"0": f"{file}:weighted/torch"}, "it holds no tensor called weight, which weighted takes"),
    ):
        with assay.swap(model, rule) as report:
            assert [s.why for s in report.sites if s.rule] == [why]
    with assay.swap(model, {"*": f"{file}:row_sum/torch:summed"}) as report:
        model[0](x)
    assert [(s.path, s.state) for s in report.sites if s.rule] == [("0", "replaced")]


def test_what_the_op_cannot_take_goes_to_the_module_with_the_reason(file):
    model = nn.Sequential(RowSum(), nn.Tanh())
    rules = {"0": f"{file}:row_sum/torch:summed", "1": f"{file}:squashed/torch"}
    with assay.swap(model, rules) as report:
        assert model(torch.ones(2, 3, 4)).shape == (2, 3)
    reasons = {s.path: next(iter(s.fallbacks)) for s in report.sites}
    assert reasons["0"] == "its input has 3 dimensions, row_sum takes 2"
    assert reasons["1"] == "its input has 2 dimensions, squashed takes 1; with independent='n' it takes more"


def test_a_users_op_called_like_the_librarys_is_not_trained_by_the_librarys_backward_kernel(file):
    model, x = nn.Sequential(nn.GELU()), torch.randn(4, requires_grad=True)
    with assay.swap(model, {"gelu": f"{file}:gelu/torch:threefold"}) as report:
        model(x).sum().backward()
    assert torch.equal(x.grad, torch.full((4,), 3.0))
    assert sites(report)["0", "gelu", "module"].backward == "PyTorch's, of the reference"


def test_a_rule_that_leaves_open_what_is_meant_is_told_how_to_name_it(file):
    model = nn.Sequential(Weighted())
    for value, advice in ((file, f"name one: {file}:weighted/torch:mine"), ("my.cu", 'name it in the key: "0:gelu"')):
        with pytest.raises(UsageError) as refused:
            assay.swap(model, {"0": value})
        assert refused.value.fix == advice
