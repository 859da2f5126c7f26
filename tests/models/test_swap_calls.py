"""What a swapped site does with a call: shapes, dtypes, what falls back, who watches, what it costs."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import architectures
import assay
from assay.models.swap import State
from swapping import seeded  # noqa: F401

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


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5), (4, 2, 3, 5)])
def test_a_norm_over_two_dimensions_has_rows_of_both(shape):
    model, x = nn.Sequential(nn.LayerNorm((3, 5))), torch.randn(shape)
    plain = model(x)
    with assay.swap(model, {"layernorm": "layernorm/torch"}) as report:
        assert torch.equal(model(x), plain)
    assert report.sites[0].calls == 1


def test_an_input_that_must_be_copied_first_is_told():
    model = nn.Sequential(nn.GELU())
    with assay.swap(model, {"gelu": "gelu/njit"}) as report:
        model(torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last))  # dense: read in the order of memory
        assert report.sites[0].copied == 0
        model(torch.randn(8, 8)[:, ::2])
    assert report.sites[0].copied == 1 and "an input copied first 1×" in str(report)


# Who watches, and what it costs.


def test_a_profiler_sees_every_site_in_a_range_of_its_own():
    model, x = architectures.Functional(), torch.randn(4, 8)
    with assay.swap(model, {"silu": "silu/torch", "gelu": "gelu/torch"}), torch.profiler.profile() as profile:
        model(x)
    seen = {e.key for e in profile.key_averages()}
    assert {"assay.swap .:silu", "assay.swap act:gelu", "assay::gelu__torch"} <= seen


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


def test_the_cost_of_the_boundary_is_measured(monkeypatch):
    from assay.models.measure import NEEDED, in_turn
    from assay.models.swap import boundary
    from assay.models.swap.boundary import boundary_cost

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
