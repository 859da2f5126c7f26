"""Swapped models on a GPU: every language, CUDA graphs, inductor, autocast, the cost of a site."""

import copy

import pytest
import torch
from torch import nn

import assay
from assay.catalog import library
from operators import OPS, within
from swapping import seeded  # noqa: F401

LANGUAGES = ("triton", "cuda", "cupy", "numba")


def with_every_op():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.SiLU(),
        nn.Flatten(2),
        nn.LayerNorm(64),
        nn.GELU(),
        nn.Linear(64, 64),
        nn.GELU("tanh"),
        nn.LayerNorm(64),
        nn.ReLU(),
        nn.RMSNorm(64, eps=1e-6),
        nn.Softmax(-1),
    )


def on_gpu(dtype=torch.float32):
    return with_every_op().to("cuda", dtype), torch.randn(4, 3, 8, 8, device="cuda", dtype=dtype)


def gpu_rules(language):
    names = {k.name for k in library.kernels()}
    return {op: f"{op}/{language}" for op in OPS if f"{op}/{language}" in names}


def test_the_model_that_is_swapped_on_a_gpu_has_every_op():
    with assay.swap(with_every_op(), {op: f"{op}/torch" for op in OPS}) as report:
        assert {site.op for site in report.sites if site.kernel} == set(OPS)


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
