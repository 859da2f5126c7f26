"""Kernels go into a model and out again: what they compute there, what falls back, what is left; nothing remains."""

import copy
import math
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import assay
from assay.catalog import library
from assay.errors import UsageError
from assay.models.swap import State

sys.path.insert(0, str(Path(__file__).parent))
import architectures
from operators import GPU, OPS, within

ROOT = Path(__file__).parents[1]
HOOKS = [n for n in vars(nn.Module()) if "hooks" in n]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    torch._dynamo.reset()


def rules_for(model, backend):
    """Every op of the model by the kernel of one language, where it has one."""
    rules = {}
    for op in OPS:
        name = backend if any(k.name == f"{op}/{backend}" for k in library.kernels()) else "torch"
        try:
            assay.swap(model, {op: f"{op}/{name}"}).undo()
            rules[op] = f"{op}/{name}"
        except UsageError:
            pass
    return rules


def run(model, inputs):
    out = model(*inputs)
    return out if isinstance(out, torch.Tensor) else out[0]


def everything(model):
    """All that a swap could leave a trace on: objects by identity, tensors by bits."""
    found = {"modules": [(path, id(m), type(m)) for path, m in model.named_modules(remove_duplicate=False)]}
    for path, m in model.named_modules():
        found[path, "dict"] = {k: id(v) for k, v in vars(m).items()}
        found[path, "hooks"] = {n: [(k, id(v)) for k, v in getattr(m, n).items()] for n in HOOKS if getattr(m, n)}
        found[path, "training"] = m.training
        found[path, "slots"] = {k: id(v) for d in (m._parameters, m._buffers, m._modules) for k, v in d.items()}
    for name, p in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)):
        found[name, "tensor"] = (id(p), p.requires_grad, p.data_ptr(), p.dtype, p.detach().numpy().tobytes())
    found["state"] = {k: v.numpy().tobytes() for k, v in model.state_dict().items()}
    return found


# In and out.


@pytest.mark.parametrize("backend", ["torch", "njit"])
@pytest.mark.parametrize("build", architectures.ALL, ids=lambda b: b.__name__)
def test_swap_and_undo_leave_a_model_bit_identical(build, backend):
    model, inputs = build()
    rules = rules_for(model, backend)
    oracle = run(copy.deepcopy(model).double(), [i.double() if i.is_floating_point() else i for i in inputs])
    plain = run(model, inputs)
    before = everything(model)
    with assay.swap(model, rules) as report:
        modules = [(path, id(m)) for path, m in model.named_modules(remove_duplicate=False)]
        assert modules == [(path, identity) for path, identity, _ in before["modules"]]
        mine = run(model, inputs)
    replaced = [s for s in report.sites if s.state is not State.LEFT]
    assert {s.op for s in replaced} == set(rules)
    assert all(s.calls >= 1 and not s.fallbacks for s in replaced)
    within(mine, plain, oracle)
    if build is architectures.odd:
        model.calls -= 1  # a buffer in which the model itself counts
    assert everything(model) == before
    assert torch.equal(run(model, inputs), plain)


def test_an_exception_inside_still_restores():
    model, inputs = architectures.cnn()
    before = everything(model)
    with pytest.raises(ZeroDivisionError), assay.swap(model, {"gelu": "gelu/torch"}):
        run(model, inputs)
        raise ZeroDivisionError
    assert everything(model) == before


def test_swaps_nest_and_repeat_and_are_undone_from_the_inside():
    model, inputs = architectures.cnn()
    before, plain = everything(model), run(model, inputs)
    outer = assay.swap(model, {"gelu": "gelu/njit"})
    between = everything(model)
    with assay.swap(model, {"gelu": "gelu/torch", "4": None}) as inner:
        run(model, inputs)
        with pytest.raises(assay.AssayError, match="undo that first"):
            outer.undo()
        assert outer.active
    assert everything(model) == between
    assert [s.calls for s in inner.sites if s.op == "gelu"] == [0, 1]
    assert [s.calls for s in outer.sites if s.op == "gelu"] == [1, 0]  # what the inner one leaves is the outer one's
    for _ in range(3):
        with assay.swap(model, {"layernorm+gelu": "ln_gelu/njit", "silu": "silu/njit"}):
            run(model, inputs)
    outer.undo()
    outer.undo()
    assert everything(model) == before and torch.equal(run(model, inputs), plain)


def test_swaps_that_do_not_touch_are_undone_in_any_order():
    model, _ = architectures.cnn()
    before = everything(model)
    first, second = assay.swap(model, {"gelu": "gelu/torch"}), assay.swap(model, {"silu": "silu/torch"})
    first.undo()
    second.undo()
    assert everything(model) == before


def test_a_copy_a_pickle_and_a_replica_of_a_swapped_model_are_their_own():
    model = nn.Sequential(nn.LayerNorm(8), nn.GELU())
    x = torch.randn(3, 8)
    with assay.swap(model, {"layernorm": "layernorm/njit", "gelu": "gelu/njit"}) as report:
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert [type(m) for m in other] == [nn.LayerNorm, nn.GELU]
            assert vars(other[1]).keys() == vars(nn.GELU()).keys()
        replica = model[0]._replicate_for_data_parallel()  # what nn.DataParallel makes for each device
        replica._parameters = {"weight": torch.full((8,), 3.0), "bias": None}
        out = replica.forward(x)
    torch.testing.assert_close(out, 3 * F.layer_norm(x, (8,)))
    assert report.sites[0].calls == 1


# Rules.


def sites(report):
    return {(s.path, s.op, s.form): s for s in report.sites}


def test_the_more_specific_rule_wins():
    block = lambda: nn.Sequential(nn.Linear(8, 8), nn.GELU())  # noqa: E731
    model = nn.ModuleDict({"a": nn.Sequential(block(), block(), block()), "b": block()})
    rules = {"a.1.1": "gelu/njit:fastmath", "a.*": "gelu/njit", "gelu": "gelu/torch", "a.2:gelu": None}
    with assay.swap(model, rules) as report:
        chosen = {s.path: (s.kernel, s.rule, s.why) for s in report.sites if s.op == "gelu"}
    assert chosen == {
        "a.0.1": ("gelu/njit", "a.*", ""),
        "a.1.1": ("gelu/njit:fastmath", "a.1.1", ""),
        "a.2.1": ("", "a.2:gelu", "a rule leaves it alone"),
        "b.1": ("gelu/torch", "gelu", ""),
    }


def test_an_ops_name_finds_the_first_kernel_of_the_documented_order():
    from assay.models.operators.choice import BEST

    model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Conv2d(1, 1, 3))
    with assay.swap(model, {"gelu": "gelu", "conv2d": "conv2d"}) as report:
        kernels = {s.op: s.kernel for s in report.sites if s.kernel}
    assert BEST["cpu"] == ("njit", "torch")
    assert kernels == {"gelu": "gelu/njit", "conv2d": "conv2d/torch"}  # nobody wrote conv2d/njit


def test_another_path_to_a_shared_module_names_it_too():
    model, _ = architectures.odd()
    with assay.swap(model, {"again.act": "gelu/njit"}) as report:
        assert sites(report)["act", "gelu", "module"].kernel == "gelu/njit"


def test_a_kernel_in_a_users_file_is_swapped_in(write):
    file = write(
        "mine.py",
        """
        import torch
        from assay import kernel

        @kernel("gelu")
        def mine(x, *, out):
            out.copy_(x + 1)
    """,
    )
    model, x = nn.Sequential(nn.GELU()), torch.randn(4)
    with assay.swap(model, {"gelu": str(file)}) as report:
        assert torch.equal(model(x), x + 1)
    assert report.sites[0].kernel == "gelu/torch:mine"


WRONG = [
    ({}, "nothing to swap"),
    ({"rmsnorm": "rmsnorm/torch"}, r"matches nothing(.|\n)*conv2d ×3"),
    ({"gelo": "gelu/torch"}, r"no module 'gelo'(.|\n)*did you mean gelu"),
    ({"99": "gelu/torch"}, "no module '99'"),
    ({"99.*:gelu": "gelu/torch"}, r"no module '99\.\*'"),
    ({"7": "gelu/torch"}, "matches nothing"),
    ({"gelu": "gelu/tritn"}, r"no kernel called(.|\n)*gelu/triton"),
    ({"gelu": "golu"}, r"no op called(.|\n)*gelu"),
    ({"gelu": "gelu/cuda"}, r"cannot run here: no GPU(.|\n)*a machine with an NVIDIA GPU"),
    ({"gelu": "gelu/triton"}, r"cannot run here: no GPU(.|\n)*a machine with an NVIDIA GPU"),
    ({"gelu": "silu/torch"}, "silu/torch computes silu, not gelu"),
    ({"6": "gelu/torch"}, "6 computes gelu_tanh, gelu/torch computes gelu"),
    ({"transpose": "transpose/torch"}, "no module or function is known to compute transpose"),
    ({"gelu+layernorm": "ln_gelu/torch"}, "no module or function is known to compute gelu\\+layernorm"),
    ({"layernorm+gelu": "gelu/torch"}, "gelu/torch computes gelu"),
    ({"linear": "gelu/torch"}, "computes gelu, not linear"),
]


@pytest.mark.skipif(assay.host.runs_on_gpu(), reason="kernels for the GPU can run here")
@pytest.mark.parametrize(("rules", "message"), WRONG, ids=[str(r) for r, _ in WRONG])
def test_a_wrong_rule_is_an_error_that_helps_and_changes_nothing(rules, message):
    model, _ = architectures.cnn()
    before = everything(model)
    with pytest.raises(UsageError, match=message) as caught:
        assay.swap(model, {"silu": "silu/torch"} | rules if rules else {})
    assert caught.value.fix
    assert everything(model) == before


def test_a_site_of_another_function_is_left_and_said_so():
    model, inputs = architectures.cnn()
    with assay.swap(model, {"gelu": "gelu/torch"}) as report:
        run(model, inputs)
    left = sites(report)["6", "gelu_tanh", "module"]
    assert (left.state, left.why, left.rule) == (State.LEFT, "computes gelu_tanh, not gelu", "gelu")


# Fallbacks.


def fallbacks(module, rules, *inputs, **kwargs):
    """The reasons of calls that went to the original, whose result must be the original's own."""
    plain = module(*inputs, **kwargs)
    with assay.swap(module, rules) as report:
        mine = module(*inputs, **kwargs)
    assert torch.equal(mine, plain)
    assert report.sites[0].state is State.FELL_BACK and report.sites[0].calls == 0
    return dict(report.sites[0].fallbacks)


def test_what_a_kernel_cannot_take_goes_to_the_original_with_the_reason():
    x = torch.randn(3, 4, 8)
    gelu, layernorm, softmax = {"gelu": "gelu/njit"}, {"layernorm": "layernorm/njit"}, {"softmax": "softmax/njit"}
    assert fallbacks(nn.GELU(), gelu, x.double()) == {"gelu/njit does not take float64": 1}
    assert fallbacks(nn.LayerNorm(8).double(), layernorm, x.double()) == {"layernorm/njit does not take float64": 1}
    assert fallbacks(nn.Softmax(1), softmax, x) == {"over dimension 1 of 3, not the last": 1}
    mixed = {"weight is float32 where the input is bfloat16": 1}
    assert fallbacks(nn.LayerNorm(8), layernorm, x.bfloat16()) == mixed
    assert fallbacks(nn.RMSNorm(8), {"rmsnorm": "rmsnorm/njit"}, x.bfloat16()).popitem()[0].startswith("eps is left")
    image = {"x has 3 dimensions, not 4": 1}
    assert fallbacks(nn.Conv2d(4, 2, 3), {"conv2d": "conv2d/torch"}, torch.randn(4, 8, 8)) == image
    sub = torch.randn(2, 8).as_subclass(type("Mine", (torch.Tensor,), {}))
    assert fallbacks(nn.GELU(), gelu, sub) == {"a Mine is not a plain tensor": 1}


def test_a_call_that_pytorch_refuses_is_refused_in_its_own_words():
    for module, x, message in (
        (nn.LayerNorm(8), torch.randn(2, 7), "normalized_shape"),
        (nn.GELU(), [1.0], "must be Tensor"),
        (nn.GELU(), torch.ones(3, dtype=torch.int64), "not implemented"),
    ):
        op = type(module).__name__.lower()
        with assay.swap(module, {op: f"{op}/njit"}) as report:
            with pytest.raises((RuntimeError, TypeError), match=message):
                module(x)
            with pytest.raises(TypeError):
                module(x, 3)
            with pytest.raises(TypeError):
                module(images=x)
        assert sum(report.sites[0].fallbacks.values()) == 3


def test_function_transforms_fall_back():
    from torch.autograd import forward_ad

    model, x = nn.Sequential(nn.GELU()), torch.randn(4, 8)
    with assay.swap(model, {"gelu": "gelu/njit"}) as report:
        torch.testing.assert_close(torch.func.vmap(model)(x), F.gelu(x))
        with forward_ad.dual_level():
            model(forward_ad.make_dual(x, torch.ones_like(x)))
    reasons = {"inside a torch.func transform": 1, "forward-mode differentiation": 1}
    assert report.sites[0].fallbacks == reasons


def test_autocast_gives_the_dtypes_it_gives_without_the_swap():
    model = nn.ModuleList([nn.Conv2d(1, 2, 3), nn.LayerNorm(8), nn.GELU(), nn.Softmax(-1), nn.RMSNorm(8, eps=1e-6)])
    inputs = [torch.randn(1, 1, 8, 8), *[torch.randn(4, 8)] * 4]
    rules = {op: f"{op}/torch" for op in ("conv2d", "layernorm", "gelu", "softmax", "rmsnorm")}
    for number in (torch.float32, torch.bfloat16):
        with torch.autocast("cpu", torch.bfloat16):
            plain = [m(x.to(number)) for m, x in zip(model, inputs, strict=True)]
            with assay.swap(model, rules) as report:
                mine = [m(x.to(number)) for m, x in zip(model, inputs, strict=True)]
        assert [o.dtype for o in mine] == [o.dtype for o in plain]
        for a, b in zip(mine, plain, strict=True):
            torch.testing.assert_close(a, b)
        assert report.sites[0].calls == 1  # the convolution, in bf16


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


# Gradients.


def test_a_gradient_has_a_gradient():
    model, x = nn.Sequential(nn.LayerNorm(8), nn.GELU(), nn.Softmax(-1)), torch.randn(3, 8, requires_grad=True)

    def penalty():
        (g,) = torch.autograd.grad(model(x).pow(3).sum(), x, create_graph=True)
        return torch.autograd.grad(g.pow(2).sum(), [x, *model.parameters()])

    plain = penalty()
    with assay.swap(model, {op: f"{op}/njit" for op in ("layernorm", "softmax")} | {"gelu": "gelu/torch"}):
        mine = penalty()
    for a, b in zip(mine, plain, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("build", [architectures.cnn, architectures.bert, architectures.odd], ids=lambda b: b.__name__)
def test_training_has_the_gradients_of_the_model_without_the_swap(build):
    model, inputs = build()

    def gradients(model, inputs):
        model.zero_grad()
        out = run(model, inputs)
        (out * torch.linspace(0, 1, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
        return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}

    exact = copy.deepcopy(model).double()
    oracle = gradients(exact, [i.double() if i.is_floating_point() else i for i in inputs])
    plain = gradients(model, inputs)
    if build is architectures.odd:
        model.seen.clear()
    with assay.swap(model, rules_for(model, "njit") | {"gelu": "gelu/torch"}) as report:
        mine = gradients(model, inputs)
    assert mine.keys() == plain.keys()
    for name in mine:
        within(mine[name], plain[name], oracle[name], slack=8)
    backward = {s.backward for s in report.sites if s.kernel}
    assert backward >= {"gelu_backward/torch", "PyTorch's, of the reference"}
    if build is architectures.odd:
        assert model.seen == ["pre", "pre", "backward"]  # hooks of swapped modules run as ever


# torch.compile.


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


# Shapes.


@st.composite
def tensors(draw):
    """Of any rank, in any order of memory, dense or with gaps."""
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    order = draw(st.permutations(range(len(sizes))))
    ordered = [sizes[i] for i in order]
    x = torch.arange(math.prod(ordered)).mul(0.7).sin().view(ordered)
    x = x.permute(sorted(range(len(order)), key=order.__getitem__))
    return x[..., ::2] if draw(st.booleans()) else x


@settings(max_examples=60, deadline=None)
@given(tensors())
def test_any_layout_comes_out_as_pytorch_would_have_it(x):
    model = nn.ModuleList([nn.GELU(), nn.LayerNorm(x.shape[-1:], bias=False), nn.Softmax(-1)])
    plain = [m(x) for m in model]
    with assay.swap(model, {"gelu": "gelu/torch", "layernorm": "layernorm/torch", "softmax": "softmax/torch"}):
        mine = [m(x) for m in model]
    for a, b in zip(mine, plain, strict=True):
        torch.testing.assert_close(a, b)
    if x.numel() and x.numel() == x.untyped_storage().nbytes() // 4:  # dense: no gaps
        assert _order(mine[0]) == _order(plain[0])


def _order(tensor):
    """Its strides, but for dimensions of one element, where they say nothing."""
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


# The rest.


def test_the_report_reads_well_and_is_data():
    model, inputs = architectures.cnn()
    with assay.swap(model, {"gelu": "gelu/torch", "conv2d": "conv2d/torch"}) as report:
        run(model, inputs)
        run(model, inputs)
    text = str(report)
    assert text.splitlines()[0] == "swap in Sequential: 4 replaced, 2 left (undone)"
    assert re.search(r"^4 +gelu +module +gelu/torch +gelu_backward/torch +2 +replaced$", text, re.MULTILINE)
    assert re.search(r"^3 +conv2d +module +left: 2 groups$", text, re.MULTILINE)
    assert "no rule names: layernorm ×1, linear ×2, silu ×1, softmax ×1" in text
    told = report.to_dict()
    assert told["rules"] == {"gelu": "gelu/torch", "conv2d": "conv2d/torch"} and not told["active"]
    assert [s["path"] for s in told["sites"] if s["state"] == "replaced"] == ["0", "4", "5", "10"]


def test_a_rule_about_functional_calls_that_never_came_is_told():
    model = architectures.Functional()
    with assay.swap(model, {"silu": "silu/njit", "own:gelu": "gelu/njit"}) as report:
        assert "rule 'silu': no call of it was seen yet" in str(report)
        model(torch.randn(2, 8))
    assert "rule 'silu'" not in str(report) and "rule 'own:gelu': no call of it was seen yet" in str(report)


def test_an_input_that_must_be_copied_first_is_told():
    model = nn.Sequential(nn.GELU())
    with assay.swap(model, {"gelu": "gelu/njit"}) as report:
        model(torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last))  # dense: read in the order of memory
        assert report.sites[0].copied == 0
        model(torch.randn(8, 8)[:, ::2])
    assert report.sites[0].copied == 1 and "an input copied first 1×" in str(report)


def test_a_profiler_sees_every_site_in_a_range_of_its_own():
    model, x = architectures.Functional(), torch.randn(4, 8)
    with assay.swap(model, {"silu": "silu/torch", "gelu": "gelu/torch"}), torch.profiler.profile() as profile:
        model(x)
    seen = {e.key for e in profile.key_averages()}
    assert {"assay.swap .:silu", "assay.swap act:gelu", "assay::gelu__torch"} <= seen


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5), (4, 2, 3, 5)])
def test_a_norm_over_two_dimensions_has_rows_of_both(shape):
    model, x = nn.Sequential(nn.LayerNorm((3, 5))), torch.randn(shape)
    plain = model(x)
    with assay.swap(model, {"layernorm": "layernorm/torch"}) as report:
        assert torch.equal(model(x), plain)
    assert report.sites[0].calls == 1


def test_the_cost_of_the_boundary_is_measured(monkeypatch):
    from assay.models.swap import boundary
    from assay.models.swap.boundary import boundary_cost
    from assay.models.turns import NEEDED, in_turn

    recorded = {}

    def watched(arms, *args, **kwargs):
        recorded.update({arm.name: arm.call().requires_grad for arm in arms if arm.name not in ("direct", "gradient")})
        (gradient,) = next(arm for arm in arms if arm.name == "gradient").call()
        assert gradient.shape == (16,) and gradient.isfinite().all()
        return in_turn(arms, *args, **kwargs)

    monkeypatch.setattr(boundary, "in_turn", watched)
    with torch.no_grad():
        cost = boundary_cost("gelu/torch", budget=0.05)
    assert recorded == {"operator": False, "autograd": True, "site": False, "training": True}
    assert cost.workload == "n=16,dtype=fp32" and cost.device == ("cuda" if torch.cuda.is_available() else "cpu")
    assert min(cost.direct, cost.operator, cost.autograd, cost.site, cost.training, cost.gradient) > 0
    assert set(cost.samples) == {"direct", "operator", "autograd", "site", "training", "gradient"}
    assert all(len(rounds) >= NEEDED for rounds in cost.samples.values())


INTERPRETED = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, assay, operators
from torch import nn
model = nn.Sequential(
    nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4), nn.LayerNorm(4), nn.SiLU(), nn.Softmax(-1)
)
x = torch.randn(3, 8, requires_grad=True)
def gradients():
    return torch.autograd.grad(model(x).pow(2).sum(), [x, *model.parameters()])
plain = gradients()
rules = {op: f"{op}/triton" for op in ("gelu", "layernorm", "silu", "softmax")}
with assay.swap(model, rules | {"layernorm+gelu": "ln_gelu/triton"}) as report:
    mine = gradients()
for a, b in zip(mine, plain, strict=True):
    torch.testing.assert_close(a, b)
print(*(f"{s.path}|{s.kernel}|{s.backward}|{s.calls}" for s in report.sites if s.calls), sep="\\n")
for kernel in operators.GPU:
    if kernel.address.backend == "triton":
        op, workload = operators.point(kernel)
        given = operators.arguments(op, workload)
        quick = ("test_schema", "test_autograd_registration", "test_faketensor")
        torch.library.opcheck(operators.trained(kernel, op).call, given, test_utils=quick)
        print(kernel)
"""


def test_triton_trains_a_model_in_its_interpreter_if_the_process_was_started_for_it():
    """And its kernels are sound operators there."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", INTERPRETED, str(ROOT / "tests")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "1 + 2|ln_gelu/triton|ln_gelu_backward/triton|1",
        "4|layernorm/triton|layernorm_backward/triton|1",
        "5|silu/triton|silu_backward/triton|1",
        "6|softmax/triton|PyTorch's, of the reference|1",
        *(str(k) for k in GPU if k.address.backend == "triton"),
    ]


def test_every_example_of_the_document_runs():
    text = (ROOT / "docs" / "swap.md").read_text()
    blocks = re.findall(r"^```python run\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    space = {}
    for block in blocks:
        exec(compile(block, "docs/swap.md", "exec"), space)
    assert len(blocks) >= 5


@pytest.mark.parametrize("recorded", [False, True])
def test_operators_are_seen_by_whoever_watches_and_cost_nothing_otherwise(recorded):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    model, x = nn.Sequential(nn.GELU()), torch.randn(5, 3, requires_grad=recorded)
    plain = model(x)
    with assay.swap(model, {"gelu": "gelu/torch"}) as report, torch.set_grad_enabled(recorded):
        alone = model(x)
        with Seen() as seen:
            watched = model(x)
        with torch.profiler.profile() as profiled:
            model(x)
    assert torch.equal(alone, plain) and torch.equal(watched, plain)
    assert "assay.gelu__torch.default" in seen.names
    assert any(e.key == "assay::gelu__torch" for e in profiled.key_averages())
    assert report.sites[0].calls == 3
    if recorded:
        assert gradients(alone, x) == gradients(watched, x)


def gradients(made, x):
    """The first and the second, as numbers."""
    (first,) = torch.autograd.grad(made.pow(2).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.pow(2).sum(), x)
    return first.tolist(), second.tolist()


# On a GPU.

LANGUAGES = ("triton", "cuda", "cupy", "numba")


def on_gpu(dtype=torch.float32):
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.SiLU(),
        nn.Flatten(2),
        nn.LayerNorm(64),
        nn.GELU(),
        nn.Linear(64, 64),
        nn.GELU("tanh"),
        nn.LayerNorm(64),
        nn.RMSNorm(64, eps=1e-6),
        nn.Softmax(-1),
    )
    return model.to("cuda", dtype), torch.randn(4, 3, 8, 8, device="cuda", dtype=dtype)


def gpu_rules(language):
    names = {k.name for k in library.kernels()}
    return {op: f"{op}/{language}" for op in OPS if f"{op}/{language}" in names}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_trains_a_model_on_the_gpu(language, dtype):
    model, x = on_gpu(dtype)

    def gradients(model, x):
        out = model(x)
        weights = torch.linspace(-1, 1, out.numel(), device="cuda", dtype=out.dtype).view_as(out)
        return [out, *torch.autograd.grad((out * weights).sum(), list(model.parameters()))]

    torch.backends.cudnn.allow_tf32 = False
    plain, oracle = gradients(model, x), gradients(copy.deepcopy(model).double(), x.double())
    with assay.swap(model, gpu_rules(language) | {"layernorm+gelu": f"ln_gelu/{language}"}) as report:
        mine = gradients(model, x)
    assert all(not s.fallbacks for s in report.sites)
    assert all(s.calls == 1 for s in report.sites if s.kernel and not s.why)
    for got, theirs, exact in zip(mine, plain, oracle, strict=True):
        within(got, theirs, exact, slack=8)


@pytest.mark.gpu
@pytest.mark.parametrize("language", ["triton", "cuda"])
def test_a_swapped_model_is_captured_into_a_cuda_graph(language):
    model, x = on_gpu()
    with assay.swap(model, gpu_rules(language)) as report, torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(x)
        x.normal_()
        graph.replay()
        torch.cuda.synchronize()
        torch.testing.assert_close(out, model(x))
    assert all(not s.fallbacks for s in report.sites)


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_swapped_model_compiles_with_inductor(mode):
    model, x = on_gpu()
    plain = model(x)
    with assay.swap(model, gpu_rules("triton")) as report:
        compiled = torch.compile(model, fullgraph=True, mode=mode)
        for _ in range(3):
            torch.compiler.cudagraph_mark_step_begin()
            out = compiled(x)
            torch.testing.assert_close(out.detach().clone(), plain)
            out.sum().backward()
            del out
            model.zero_grad()  # a graph's next replay writes over the gradients of this one
    assert all(s.traced for s in report.sites if s.kernel)


@pytest.mark.gpu
def test_inductor_launches_triton_kernels_itself_whatever_the_batch():
    from torch._inductor.utils import run_and_get_code

    model, x = on_gpu()
    model.eval().requires_grad_(False)
    x = torch.cat([x, x])
    with assay.swap(model, gpu_rules("triton")) as report:
        torch._dynamo.reset()
        compiled, seen = torch.compile(model, fullgraph=True), []
        for rows in (8, 3, 5, 7):  # the first change of the size makes it a symbol
            out, code = run_and_get_code(compiled, x[:rows])
            torch.testing.assert_close(out, model(x[:rows]))
            seen += code
    assert seen and not any("torch.ops.assay" in code for code in seen)
    assert all(s.traced for s in report.sites if s.kernel)


@pytest.mark.gpu
def test_autocast_on_the_gpu_gives_the_dtypes_it_gives_without_the_swap():
    model, x = on_gpu()
    for number in (torch.bfloat16, torch.float16):
        with torch.autocast("cuda", number):
            plain = [x]
            for m in model:
                plain.append(m(plain[-1]))
            with assay.swap(model, gpu_rules("triton")):
                mine = [m(given) for m, given in zip(model, plain, strict=False)]
        assert [t.dtype for t in mine] == [t.dtype for t in plain[1:]]


@pytest.mark.gpu
def test_a_site_costs_tens_of_microseconds_at_most():
    from assay.models.swap.boundary import boundary_cost

    cost = boundary_cost("gelu/triton")
    assert cost.device == "cuda" and cost.site - cost.direct < 60e-6
