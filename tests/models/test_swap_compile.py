"""torch.compile of a swapped model, and pairs of neighbours that one kernel computes."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import architectures
import assay
from assay.errors import UsageError
from assay.models.swap import State
from swapping import run, seeded, sites  # noqa: F401

# torch.compile.


@pytest.mark.slow
def test_swapped_modules_compile_into_one_graph_and_calls_are_counted_when_it_is_traced():
    model, inputs = architectures.cnn()
    rules = {"gelu": "gelu/njit", "layernorm": "layernorm/njit", "silu": "silu/njit", "layernorm+gelu": "ln_gelu/njit"}
    plain = run(model, inputs)
    with assay.swap(model, rules) as report:
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(run(compiled, inputs), plain)
        run(compiled, inputs).sum().backward()
        run(compiled, [torch.randn(3, 3, 8, 8)])  # another batch: a graph of symbolic sizes
        run(compiled, [torch.randn(5, 3, 8, 8)])
    traced = {s.path: (s.calls, s.traced) for s in report.sites if s.kernel}
    assert traced == {"2": (0, 2), "4": (0, 2), "9": (0, 0), "10": (0, 0), "9 + 10": (0, 2)}
    assert "not counted" in str(report)


def test_functional_calls_compile_into_one_graph_too():
    model, x = architectures.Functional(), torch.randn(4, 8)
    plain = model(x)
    rules = {op: f"{op}/njit" for op in ("silu", "softmax", "gelu", "layernorm")} | {"gelu_tanh": None}
    with assay.swap(model, rules) as report:
        mine = torch.compile(model, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(mine, plain)
    found = sites(report)
    assert found["", "silu", "function"].traced == found["act", "gelu", "module"].traced == 1
    assert found["own", "layernorm", "function"].traced == 1
    over_rows = found["", "softmax", "function"]
    assert over_rows.traced == 1 and "over dimension 0 of 2" in over_rows.why and "counted once" in over_rows.why
    assert found["", "gelu_tanh", "function"].state is State.LEFT and ("", "gelu", "function") not in found


def test_a_compiled_model_sees_the_swap_and_its_undo():
    model, x = nn.Sequential(nn.Linear(8, 8), nn.Softmax(-1), nn.Softmax(-2)), torch.randn(3, 8)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    plain = compiled(x)
    with assay.swap(compiled, {"softmax": "softmax/njit"}) as report:
        compiled(x)
        assert [(s.traced, len(s.fallbacks)) for s in report.sites if s.kernel] == [(1, 0), (0, 1)]
    compiles = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert torch.equal(compiled(x), plain)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == compiles  # its first graph fits again


# Fusion.


class Straight(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.act, self.out = nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 8)
        self.other = nn.LayerNorm(8)

    def forward(self, x):
        y = self.act(self.norm(x))
        return self.out(F.gelu(self.other(y))) + x


class Branching(Straight):
    def forward(self, x, mask=None):
        y = self.norm(x)
        return self.act(y) if mask is None else y


class Configured(Straight):
    slope = 2.0

    def forward(self, x):
        return self.act(self.norm(x)) * self.slope


class ReadTwice(Straight):
    def forward(self, x):
        y = self.norm(x)
        return self.act(y) + y


def test_neighbours_are_fused_and_trained_by_one_kernel():
    act = nn.GELU()  # one module, which follows a LayerNorm in one place and not in the other
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), act, nn.Linear(8, 8), act, Straight())
    x = torch.randn(4, 8, requires_grad=True)
    plain = model(x)
    expected = torch.autograd.grad(plain.sum(), [x, *model.parameters()])
    with assay.swap(model, {"layernorm+gelu": "ln_gelu/njit"}) as report:
        mine = model(x)
        torch.testing.assert_close(mine, plain)
        for a, b in zip(torch.autograd.grad(mine.sum(), [x, *model.parameters()]), expected, strict=True):
            torch.testing.assert_close(a, b)
    fused = [(s.path, s.calls) for s in report.sites if s.form == "fused"]
    assert fused == [("1 + 2", 1), ("5.norm + 5.act", 1), ("5.other + 5.gelu", 1)]
    assert sites(report)["1", "layernorm", "module"].why == "part of 1 + 2"


def test_a_pair_is_left_where_a_trace_would_not_be_the_whole_truth():
    rules = {"layernorm+gelu": "ln_gelu/njit"}
    for kind, why in (
        (Branching, "branches or loops (`self.act(y) if mask is None else y`)"),
        (Configured, "reads self.slope, which a trace would freeze"),
        (architectures.Odd, "branches, loops or works in place"),
    ):
        with assay.swap(kind(), rules) as report:
            (left,) = [s for s in report.sites if s.form == "fused"]
        assert left.state is State.LEFT and why in left.why
    with pytest.raises(UsageError, match="no layernorm whose result goes to a gelu alone"):
        assay.swap(ReadTwice(), rules)


def test_a_hook_between_two_neighbours_is_still_called():
    model, seen = nn.Sequential(nn.LayerNorm(8), nn.GELU()), []
    with assay.swap(model, {"layernorm+gelu": "ln_gelu/njit", "gelu": "gelu/njit"}) as report:
        model[0].register_forward_hook(lambda m, args, out: seen.append(out))
        model(torch.randn(2, 8))
    assert len(seen) == 1
    found = sites(report)
    assert found["0 + 1", "layernorm+gelu", "fused"].fallbacks == {"a hook watches LayerNorm": 1}
    assert found["1", "gelu", "module"].calls == 1  # which then goes by its own rule
