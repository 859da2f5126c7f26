"""Kernels as operators of PyTorch's: which there are, a call of each, and how near its result must be."""

import torch

from assay.catalog import library
from assay.inputs import generate
from assay.models.operators.operator import for_training, operator
from assay.workload import Workload

OPS = tuple(op for declared in library.swappable() if declared.functions for op in declared.ops)
"""Those that functions of PyTorch compute."""
FORWARD = [
    k
    for k in library.kernels()
    if k.address.op in (*OPS, "ln_gelu") and k.address.backend in ("torch", "njit") and not k.address.variant
]
WRITTEN = [
    k
    for k in library.kernels()
    if k.address.op.endswith("_backward") and k.address.backend == "torch" and k.file is not None
]
GPU = [
    k
    for k in library.kernels()
    if k.address.backend in ("triton", "cuda", "cupy", "numba")
    and not k.needs
    and k.address.op in (*OPS, "ln_gelu", *(f"{op}_backward" for op in (*OPS, "ln_gelu")))
]


def point(kernel, dtype="fp32"):
    op = library.ops()[kernel.address.op]
    sizes = ",".join(f"{a}={3 if a in 'rs' else 4}" for a in op.axes)
    return op, Workload.of(op, f"{sizes},dtype={dtype}")


def arguments(op, workload, device="cpu"):
    drawn = generate(workload)
    tensors = [drawn[n].to(device) if n in drawn else None for n in op.inputs]
    leaves = [
        t if t is None or op.inputs[n].dtype else t.requires_grad_() for n, t in zip(op.inputs, tensors, strict=True)
    ]
    return [*leaves, *(value for _, value in workload.attributes)]


def trained(kernel, op):
    """The operator that training uses."""
    return for_training(operator(kernel, op))


def within(mine, plain, oracle, slack=4.0):
    """Is a result as near to the float64 one as PyTorch's own, give or take a few roundings?"""
    mine, plain, oracle = mine.detach(), plain.detach(), oracle.detach()
    scale = float(oracle.abs().max()) or 1.0
    limit = slack * float((plain.double() - oracle).abs().max()) + 8 * torch.finfo(plain.dtype).eps * scale
    assert float((mine.double() - oracle).abs().max()) <= limit
