"""A kernel as an operator of PyTorch's: sound, with the right gradients, and open to a compiler."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.catalog import library
from assay.models.operators.inlined import constant_in_text
from operators import FORWARD, GPU, WRITTEN, arguments, point, trained, within

ROOT = Path(__file__).parents[2]
OPCHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("kernel", FORWARD + WRITTEN, ids=str)
def test_every_kernel_is_a_sound_operator(kernel):
    """opcheck: the schema tells the truth about mutation and aliasing, the fake implementation agrees with the real
    one, autograd is registered, and AOT dispatch gives the same results and gradients."""
    op, workload = point(kernel)
    torch.library.opcheck(trained(kernel, op).call, arguments(op, workload))


HALVES = [k for k in FORWARD if k.address.backend == "torch" or k.address.op == "layernorm"]  # njit compiles them anew


@pytest.mark.parametrize(
    ("kernel", "dtype"), [*((k, "fp32") for k in FORWARD), *((k, "bf16") for k in HALVES)], ids=str
)
def test_gradients_are_those_of_the_reference_in_float64(kernel, dtype):
    op, workload = point(kernel, dtype)
    given = arguments(op, workload)
    leaves = [t for t in given if isinstance(t, torch.Tensor)]
    out = trained(kernel, op).call(*given)
    out = out[0] if isinstance(out, tuple) else out
    dy = torch.linspace(-1, 1, out.numel()).view_as(out).to(out.dtype)
    mine = torch.autograd.grad(out, leaves, dy)

    def reference(number):
        cast = [t.detach().to(number).requires_grad_() if isinstance(t, torch.Tensor) else t for t in given]
        result = op.reference(*cast[: len(op.inputs)], **dict(workload.attributes))
        result = result[0] if isinstance(result, tuple) else result
        return torch.autograd.grad(result, [t for t in cast if isinstance(t, torch.Tensor)], dy.to(number))

    for got, plain, exact in zip(mine, reference(out.dtype), reference(torch.float64), strict=True):
        within(got, plain, exact)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", GPU, ids=str)
def test_every_kernel_of_the_gpu_is_a_sound_operator(kernel):
    op, workload = point(kernel)
    checks = list(OPCHECKS)
    if op.name == "rmsnorm":  # PyTorch 2.11's own gradient of rms_norm reads a symbolic size as a number
        checks.remove("test_aot_dispatch_dynamic")
    torch.library.opcheck(trained(kernel, op).call, arguments(op, workload, "cuda"), test_utils=checks)


# What a compiler sees.

TRACED = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, triton, operators
from functorch.compile import aot_function
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table
from triton.backends.compiler import GPUTarget
from assay.catalog import library
from assay.backends import Availability, Level
from assay.models.operators import contract, gradient, inlined, operator


class Driver:  # for PyTorch to find out, from the kernel's IR, what it writes
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)


class Enough(Exception):
    pass


def keep(graph, inputs):
    global nodes
    nodes = [n for n in graph.graph.nodes if n.op == "call_function"]
    raise Enough


floats = set()
triton.runtime.driver.set_active(Driver())
for module in (contract, gradient, inlined):
    module.here = lambda kernel: Availability(Level.RUN, "", device="cpu")
for kernel in library.kernels():
    if str(kernel) not in sys.argv[2:]:
        continue
    op, workload = operators.point(kernel)
    made, given = operator.operator(kernel, op), operators.arguments(op, workload)
    given = [t.detach() if isinstance(t, torch.Tensor) else t for t in given]
    number = [] if any(t.dtype is None for t in op.inputs.values()) else [workload.dtype.torch]
    for dynamic in (False, True):
        nodes = None
        try:
            aot_function(lambda *tensors: made.call(*tensors, *number), fw_compiler=keep, dynamic=dynamic)(*given)
        except Enough:
            pass
        launches = [n for n in nodes if "triton_kernel_wrapper" in str(n.target)]
        assert not any("assay" in str(n.target) for n in nodes), kernel
        written = {n.kwargs["kwargs"][name] for n in launches for name in n.kwargs["tensors_to_clone"]}
        assert all("empty" in str(n.target) for n in written), kernel
        assert len(written) >= len(made.outputs), kernel
        for launch in launches:  # inductor would make a float an argument in float64, and compile the text again
            jitted = kernel_side_table.get_kernel(launch.kwargs["kernel_idx"])
            jitted = jitted.fn if hasattr(jitted, "configs") else jitted  # where warps were asked for
            constants = kernel_side_table.get_constant_args(launch.kwargs["constant_args_idx"])
            given_to = constants | launch.kwargs["kwargs"]
            for parameter in jitted.params:
                if isinstance(given_to.get(parameter.name), float):
                    assert parameter.is_constexpr and f"{parameter.name}: tl.constexpr" in jitted.src, kernel
                    floats.add(parameter.name)
        print(kernel, "dynamic" if dynamic else "static", len(launches))
assert "eps" in floats

gelu = operator.operator(*next((k, library.ops()["gelu"]) for k in library.kernels() if k.name == "gelu/triton"))


class Model(torch.nn.Module):
    def forward(self, x):
        return gelu.call(x)


exported = torch.export.export(Model(), (torch.randn(64),)).run_decompositions({})
assert "assay.gelu__triton.default" in [str(n.target) for n in exported.graph.nodes]
"""


TRITON = [str(k) for k in library.kernels() if k.address.backend == "triton" and not k.needs]
SAMPLE = ["gelu/triton", "layernorm/triton", "sum/triton"]
"""One launch, `eps`, two launches."""


@pytest.mark.slow
@pytest.mark.parametrize("kernels", [SAMPLE, pytest.param(TRITON, marks=pytest.mark.whole)], ids=["sample", "all"])
def test_a_compiler_sees_every_launch_of_a_triton_kernel_and_what_it_writes(kernels):
    """It writes what was allocated for it, and nothing else; whether sizes are numbers or symbols. An
    export keeps the operator."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", TRACED, str(ROOT / "tests" / "support"), *kernels]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "every input is mutated" not in done.stderr  # what PyTorch says where it cannot tell
    traced = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert set(traced) == {f"{k} {sizes}" for k in kernels for sizes in ("static", "dynamic")}
    assert traced["gelu/triton static"] == "1" and traced["sum/triton dynamic"] == "2"


@given(st.data())
def test_a_parameter_becomes_a_constant_in_the_text_of_a_kernel_and_nothing_else_changes(data):
    names = data.draw(
        st.lists(st.sampled_from(["x", "y", "n", "eps", "epsilon", "N", "BLOCK"]), min_size=1, unique=True)
    )
    forms = [
        data.draw(st.sampled_from(["{}", "{}: tl.constexpr", "{}: tl.float32", "{}: (\n tl.float32\n)"])) for _ in names
    ]
    gap = data.draw(st.sampled_from([", ", ",\n    ", ",  # eps: float\n    "]))
    text = (
        f"def _eps({gap.join(f.format(n) for f, n in zip(forms, names, strict=True))}\n):\n    eps = eps + 1.0  # eps\n"
    )
    chosen = frozenset(data.draw(st.sets(st.sampled_from(names))))
    before, after = ast.parse(text).body[0], ast.parse(constant_in_text(text, chosen)).body[0]
    for old, new in zip(before.args.args, after.args.args, strict=True):
        if old.arg in chosen:
            assert ast.unparse(new) == f"{old.arg}: tl.constexpr"
            new.annotation = old.annotation
    assert ast.dump(before) == ast.dump(after)
