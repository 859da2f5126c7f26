"""Which places in a model a swap takes: modules, functional calls, classes known by name, whole modules."""

import ast
import inspect
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import architectures
import assay
from assay.catalog import library
from assay.models.swap import State
from assay.models.swap.rules import FUSIONS
from assay.models.swap.sites import FUNCTIONS, MODULES
from operators import OPS
from swapping import run, seeded, sites  # noqa: F401

ROOT = Path(__file__).parents[2]

# Declarations.


def test_every_swappable_op_is_declared_in_its_own_folder_and_nowhere_else():
    """swap names no op of the library: what an op stands for is read from `library/<op>/swap.py`."""
    assert {*OPS} >= {"gelu", "gelu_tanh", "silu", "relu", "layernorm", "rmsnorm", "softmax", "conv2d"}
    assert {op for declared in library.swappable() for op in declared.ops} == {*OPS, "linear"}
    for field, table in (("modules", MODULES), ("functions", FUNCTIONS)):  # nothing is declared twice
        assert len(table) == sum(len(getattr(declared, field)) for declared in library.swappable())
    assert {*OPS, *FUSIONS.values()} <= library.ops().keys() and FUSIONS == {"layernorm+gelu": "ln_gelu"}
    for file in (ROOT / "src" / "assay" / "models" / "swap").glob("*.py"):
        words = {n.value for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Constant)}
        assert not words & {*library.ops(), "linear"} or file.name == "boundary.py", file


def test_every_function_is_bound_with_the_parameters_that_pytorch_gives_it():
    """A wrong default or order would swap a call that computes something else."""
    written = [f for f in FUNCTIONS if inspect.isfunction(f)]  # the others are built in and have no signature
    assert {F.silu, F.relu, F.layer_norm, F.rms_norm, F.softmax} <= {*written}
    for function in written:
        theirs = [(p.name, p.default) for p in inspect.signature(function).parameters.values()]
        mine = [(p.name, p.default) for p in inspect.signature(FUNCTIONS[function][1]).parameters.values()]
        assert mine[: len(theirs)] == theirs, function


class Relus(nn.Module):
    """ReLU as PyTorch offers it, in place and not."""

    def __init__(self):
        super().__init__()
        self.module, self.in_place = nn.ReLU(), nn.ReLU(inplace=True)

    def forward(self, x):
        x = torch.stack([self.module(x), F.relu(x), torch.relu(x), x.relu()]) - 0.5
        x = self.in_place(x.clone()) + F.relu(x.clone(), inplace=True) + torch.relu_(x.clone())
        return x + x.clone().relu_()


@pytest.mark.parametrize("kernel", ["relu/njit", "relu/torch"])
def test_relu_is_swapped_wherever_it_does_not_work_in_place(kernel):
    model, x = Relus(), torch.randn(3, 8, requires_grad=True)
    with torch.no_grad():
        x[0] = torch.tensor([0.0, -0.0, math.nan, math.inf, -math.inf, 1e-45, -1e-45, 3])
    plain = model(x)
    (expected,) = torch.autograd.grad(plain.sum(), x)
    with assay.swap(model, {"relu": kernel}) as report:
        mine = model(x)
        (gradient,) = torch.autograd.grad(mine.sum(), x)
    torch.testing.assert_close(mine, plain, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=0, equal_nan=True)
    found = sites(report)
    assert found["module", "relu", "module"].calls == 1
    assert found["in_place", "relu", "module"].why == "it works in place"
    function = found["", "relu", "function"]
    assert function.calls == 3 and function.fallbacks == {"it works in place": 1}
    assert function.backward == kernel.replace("relu", "relu_backward")


def test_a_setting_that_is_changed_under_a_swap_is_noticed():
    model, x = nn.Sequential(nn.GELU(), nn.ReLU()), torch.randn(8)
    with assay.swap(model, {"gelu": "gelu/torch", "relu": "relu/torch"}) as report:
        model[0].approximate, model[1].inplace = "tanh", True
        assert torch.equal(model(x), F.gelu(x, approximate="tanh").relu())
    assert [s.fallbacks for s in report.sites] == [{"it computes gelu_tanh now": 1}, {"it works in place": 1}]


# Functional calls.


def test_functional_calls_are_sites_of_the_innermost_module_that_makes_them():
    model, inputs = architectures.odd()
    rules = {"silu": "silu/njit", "softmax": "softmax/njit", "layernorm": "layernorm/njit", "gelu": "gelu/njit"}
    with assay.swap(model, rules) as report:
        assert not [s for s in report.sites if s.form == "function"]  # known once they ran
        run(model, inputs)
        F.gelu(torch.randn(3))  # outside of the model: none of its business
    found = sites(report)
    assert found["", "silu", "function"].calls == found["", "softmax", "function"].calls == 1
    assert found["again.own", "layernorm", "function"].calls == 1
    assert "writes its own forward" in found["again.own", "layernorm", "module"].why
    assert found["", "gelu_tanh", "function"].why == "computes gelu_tanh, not gelu"
    assert found["act", "gelu", "module"].calls == 2 and ("", "gelu", "function") not in found


def test_a_known_module_that_is_left_is_not_taken_for_its_containers_call():
    model, inputs = architectures.odd()
    with assay.swap(model, {"*:gelu": "gelu/njit", "act": None, "norm": None, "layernorm": "layernorm/njit"}) as report:
        run(model, inputs)
    found = sites(report)
    assert found["act", "gelu", "module"].state is State.LEFT
    assert ("", "gelu", "function") not in found and ("", "layernorm", "function") not in found


def test_a_transformer_layer_of_pytorch_is_taken_apart():
    model = nn.TransformerEncoderLayer(8, 2, 16, activation=F.gelu, batch_first=True, dropout=0.0)
    x = torch.randn(2, 5, 8)
    plain = model(x)
    with assay.swap(model, {"gelu": "gelu/njit", "layernorm": "layernorm/njit"}) as report:
        mine = model(x)
    torch.testing.assert_close(mine, plain)
    assert {(s.path, s.calls) for s in report.sites if s.kernel} == {("", 1), ("norm1", 1), ("norm2", 1)}


# Odd modules.


class Registered(nn.GELU):
    kinds = {}  # noqa: RUF012

    def __init_subclass__(cls):
        Registered.kinds[cls.__name__] = cls


class OfARegistry(Registered):
    pass


def test_modules_that_cannot_be_changed_without_a_trace_are_left():
    scripted = torch.jit.script(nn.Sequential(nn.GELU()))
    taken = nn.GELU()
    taken.forward = lambda x: x
    model = nn.ModuleList([OfARegistry(), taken, nn.LazyConv2d(2, 3), scripted, nn.GELU()])
    before, kinds = len(vars(taken)), dict(Registered.kinds)
    with assay.swap(model, {"gelu": "gelu/torch", "conv2d": "conv2d/torch"}) as report:
        left = {s.path: s.why for s in report.sites if s.state is State.LEFT}
        assert model[1](3) == 3
    assert "acts on its subclasses" in left["0"] and "another forward" in left["1"] and "first call" in left["2"]
    assert Registered.kinds == kinds and len(vars(taken)) == before
    assert [s.path for s in report.sites if s.kernel] == ["4"]


def test_a_class_known_by_name_is_tried_out_first():
    def like(name, formula):
        return type(name, (nn.Module,), {"forward": lambda self, x: formula(x)})()

    norm = like("SomeRMSNorm", lambda x: x)
    norm.weight, norm.variance_epsilon = nn.Parameter(torch.ones(8)), 1e-6
    model = nn.ModuleList(
        [
            like("NewGELUActivation", lambda x: F.gelu(x, approximate="tanh")),
            like("NewGELUActivation", lambda x: F.gelu(x)),
            norm,
        ]
    )
    with assay.swap(model, {"gelu_tanh": "gelu_tanh/torch", "rmsnorm": "rmsnorm/torch"}) as report:
        states = [s.state for s in report.sites]
    assert states == [State.REPLACED, State.LEFT, State.LEFT]


def test_a_module_can_be_replaced_as_a_whole(write):
    """The extension point: what packs weights builds another module, takes the tensors away, and gives them back."""
    from assay.models.swap import replacement

    file = write(
        "packed.py",
        """
        from assay import Axis, Tensor, kernel, op

        @op(axes={"n": Axis()}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n")})
        def packed_linear(x):
            return x

        @kernel("packed_linear", backend="torch")
        def packed(x, *, out):
            out.copy_(x)
    """,
    )

    class Packed(nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.codes = weight

        def forward(self, x):
            return x @ self.codes.T * 2

    class Packing:
        op, site, backward, fails, lost = "packed_linear", "linear", "none", False, False

        def chosen(self):
            return None

        def refusal(self, module, kind, kernel):
            return "it has a bias" if module.bias is not None else ""

        def build(self, module, kernel, op, tally):
            if self.fails:
                raise OSError("no space left")
            built = Packed(module.weight.detach().clone())
            module.weight.data = torch.empty(0)
            return built

        def restore(self, module, built):
            if self.lost:
                raise OSError("the file is gone")
            module.weight.data = built.codes

    packing = Packing()
    replacement.register(packing)
    shared = nn.Linear(4, 4, bias=False)
    shared.register_forward_hook(lambda m, args, out: out + 1)
    model = nn.Sequential(shared, nn.Linear(4, 4), nn.ModuleDict({"again": shared}), nn.GELU())
    x, weight, before = torch.randn(2, 4), shared.weight.detach().clone(), {k: id(v) for k, v in vars(shared).items()}
    with assay.swap(model, {"linear": str(file), "gelu": "gelu/torch"}) as report:
        assert model[0] is model[2]["again"] is not shared and not shared.weight.numel()
        torch.testing.assert_close(model[0](x), 2 * x @ weight.T + 1)
        model.eval()
    assert model[0] is model[2]["again"] is shared and not shared.training
    shared.train()
    assert torch.equal(shared.weight, weight) and {k: id(v) for k, v in vars(shared).items()} == before
    found = {s.path: (s.state, s.why, s.calls) for s in report.sites if s.op == "linear"}
    assert found == {"0": (State.REPLACED, "", 1), "1": (State.LEFT, "it has a bias", 0)}
    packing.lost = True
    report = assay.swap(model, {"linear": str(file), "gelu": "gelu/torch"})
    with pytest.raises(OSError, match="the file is gone"):
        report.undo()
    assert type(model[3]) is nn.GELU and report.active  # the rest is back, and so will this be
    packing.lost = False
    report.undo()
    assert model[0] is shared and torch.equal(shared.weight, weight)
    packing.fails = True
    with pytest.raises(OSError, match="no space"):
        assay.swap(model, {"linear": str(file), "gelu": "gelu/torch"})
    assert type(model[3]) is nn.GELU and model[0] is shared
