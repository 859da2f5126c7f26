"""Small Triton kernels, run as this process runs Triton: compiled on a GPU, or in the interpreter as a worker patches
it. Writes what each gave: `python triton_facts.py FILE cpu|cuda [plain]` (`plain`: the interpreter as it comes)."""

import sys

import torch

FILE, DEVICE = sys.argv[1:3]
if DEVICE == "cpu" and sys.argv[3:] != ["plain"]:
    from assay.backends import backend

    backend("triton").prepare("triton-interpret")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402

RESULTS, N = {}, 1024


@triton.jit
def _dot(a, b, c, out, SIZE: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr, HALF: tl.constexpr):
    i, j, k = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, K)
    x, y = tl.load(a + i * K + k[None, :]), tl.load(b + k[:, None] * SIZE + j)
    start = tl.load(c + i * SIZE + j)
    if HALF:
        z = tl.dot(x, y, start.to(tl.float16), input_precision=PRECISION, out_dtype=tl.float16).to(tl.float32)
    elif x.dtype == tl.int8:
        z = tl.dot(x, y, start, out_dtype=tl.int32)
    else:
        z = tl.dot(x, y, start, input_precision=PRECISION)
    tl.store(out + i * SIZE + j, z)


@triton.jit
def _binary(a, b, out, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    if KIND == "divide":
        z = x / y
    elif KIND == "div_rn":
        z = tl.div_rn(x, y)
    elif KIND == "remainder":
        z = x % y
    elif KIND == "add":
        z = x + y
    elif KIND == "subtract":
        z = x - y
    elif KIND == "multiply":
        z = x * y
    elif KIND == "maximum":
        z = tl.maximum(x, y)
    elif KIND == "minimum":
        z = tl.minimum(x, y)
    elif KIND == "maximum_nan":
        z = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    elif KIND == "less":
        z = tl.where(x < y, x, y)
    elif KIND == "fused":
        z = x * y - x
    elif KIND == "squares":
        z = x * x - y * y
    elif KIND == "and":
        z = tl.where((x > 0) and (y > 0), 1.0, 0.0)
    elif KIND == "or":
        z = tl.where((x > 0) or (y > 0), 1.0, 0.0)
    elif KIND == "not":
        z = tl.where(not (x > 0), 1.0, 0.0)
    elif KIND == "fast_dividef":
        z = libdevice.fast_dividef(x, y)
    elif KIND == "pow":
        z = libdevice.pow(x, y)
    tl.store(out + i, z)


@triton.jit
def _unary(a, out, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    if KIND == "sqrt":
        z = tl.sqrt(x)
    elif KIND == "rsqrt":
        z = tl.rsqrt(x)
    elif KIND == "exp":
        z = tl.exp(x)
    elif KIND == "exp2":
        z = tl.exp2(x)
    elif KIND == "floor":
        z = tl.floor(x)
    elif KIND == "erf":
        z = tl.erf(x)
    elif KIND == "log":
        z = tl.log(x)
    elif KIND == "sin":
        z = tl.sin(x)
    elif KIND == "tanh":
        z = libdevice.tanh(x)
    elif KIND == "fast_expf":
        z = libdevice.fast_expf(x)
    elif KIND == "clamp":
        z = tl.clamp(x, -1.0, 2.0)
    elif KIND == "int8":
        z = x.to(tl.int8)
    elif KIND == "int16":
        z = x.to(tl.int16)
    elif KIND == "int32":
        z = x.to(tl.int32)
    elif KIND == "uint32":
        z = x.to(tl.uint32)
    elif KIND == "int64":
        z = x.to(tl.int64)
    elif KIND == "bf16":
        z = x.to(tl.bfloat16)
    elif KIND == "fp8e4nv":
        z = x.to(tl.float8e4nv).to(tl.float32)
    elif KIND == "fp8e5":
        z = x.to(tl.float8e5).to(tl.float32)
    elif KIND == "sum":
        z = tl.zeros_like(x) + tl.sum(x, 0)
    elif KIND == "max":
        z = tl.zeros_like(x) + tl.max(x, 0)
    elif KIND == "argmax":
        z = tl.zeros((N,), tl.int32) + tl.argmax(x, 0)
    elif KIND == "cumsum":
        z = tl.cumsum(x, 0)
    elif KIND == "cumsum_reverse":
        z = tl.cumsum(x, 0, reverse=True)
    elif KIND == "sort":
        z = tl.sort(x)
    elif KIND == "rand":
        z = tl.rand(7, i)
    tl.store(out + i, z)


@triton.jit
def _affine(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def _leaky(old, new):
    return old * 0.5 + new


@triton.jit
def _combine(a, out, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    if KIND == "recurrence":
        _, z = tl.associative_scan((tl.full((N,), 0.5, tl.float32), x), 0, _affine)
    elif KIND == "leaky":
        z = tl.associative_scan(x, 0, _leaky)
    elif KIND == "product":
        z = tl.zeros_like(x) + tl.reduce(x, 0, _times)
    tl.store(out + i, z)


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def _scalars(a, out, scale, flag, one, N: tl.constexpr):
    i = tl.arange(0, N)
    z = tl.load(a + i) * scale * one
    if flag:
        z = z * 2
    tl.store(out + i, z)


@triton.jit
def _atomic(a, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out + i % 8, tl.load(a + i), mask=i < 64)


@triton.jit
def _masked(a, out, n, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    if KIND == "elementwise":
        tl.store(out + i, tl.load(a + i, mask=i < n) * 2, mask=i < n)
    elif KIND == "sum":
        tl.store(out + i, tl.zeros((N,), tl.float32) + tl.sum(tl.load(a + i, mask=i < n), 0))
    elif KIND == "max":
        tl.store(out + i, tl.zeros((N,), tl.float32) + tl.max(tl.load(a + i, mask=i < n), 0))
    elif KIND == "other":
        tl.store(out + i, tl.zeros((N,), tl.float32) + tl.sum(tl.load(a + i, mask=i < n, other=0.0), 0))
    elif KIND == "block":
        block = tl.make_block_ptr(a, (n,), (1,), (0,), (N,), (0,))
        tl.store(out + i, tl.load(block, boundary_check=(0,)))
    elif KIND == "block_nan":
        block = tl.make_block_ptr(a, (n,), (1,), (0,), (N,), (0,))
        tl.store(out + i, tl.load(block, boundary_check=(0,), padding_option="nan"))


def values(seed, dtype=torch.float32, scale=1.0):
    return (torch.randn(N, generator=torch.Generator().manual_seed(seed)) * scale).to(dtype).to(DEVICE)


def keep(name, function, *tensors, out=torch.float32, size=N):
    result = torch.zeros(size, dtype=out, device=DEVICE)
    try:
        function(*(t.to(DEVICE) for t in tensors), result)
    except Exception as error:
        RESULTS[name] = f"{type(error).__name__}: {error}"
    else:
        RESULTS[name] = result.cpu()


def unary(kind, x, dtype="", out=torch.float32):
    keep(kind + dtype, lambda a, z: _unary[(1,)](a, z, kind, N), x, out=out)


def binary(kind, x, y, dtype="", out=torch.float32):
    keep(kind + dtype, lambda a, b, z: _binary[(1,)](a, b, z, kind, N), x, y, out=out)


def dots():
    generator = torch.Generator().manual_seed(0)
    for k in (32, 256):
        a, b, c = (torch.randn(s, generator=generator) for s in ((32, k), (k, 32), (32, 32)))
        RESULTS[f"operands/{k}"] = (a, b, c)
        cases = [(p, torch.float32, False) for p in ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6", None)]
        cases += [(None, torch.float16, False), (None, torch.bfloat16, False), (None, torch.float16, True)]
        cases += [(None, torch.float8_e4m3fn, False), (None, torch.int8, False)]
        for precision, dtype, half in cases:
            name = f"dot/{precision}/{str(dtype).removeprefix('torch.')}{'/half' * half}/{k}"
            x, y = ((20 * t).to(dtype) if dtype == torch.int8 else t.to(dtype) for t in (a, b))
            start, out = (c.int(), torch.int32) if dtype == torch.int8 else (c, torch.float32)
            keep(
                name,
                lambda *t, p=precision, h=half, k=k: _dot[(1,)](*t, 32, k, p, h),
                x,
                y,
                start,
                out=out,
                size=(32, 32),
            )


def elementwise():
    x, y = values(1), values(2)
    odd = x.clone()
    odd[:8] = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e-40, -1e-40, 0.0, -0.0, 3e9])
    whole = torch.arange(1, N + 1, dtype=torch.float32)
    binary("divide", whole, whole)
    binary("divide", x, y, "/normals")
    binary("divide", x * 1e-20, torch.full_like(x, 1e-39), "/tiny")
    binary("div_rn", whole, whole)
    binary("remainder", 100 * x, y)
    binary("fused", x, y)
    binary("squares", x, x)
    for kind in ("maximum", "minimum", "maximum_nan", "and", "or"):
        binary(kind, odd, y)
    binary("maximum", torch.zeros(N), -torch.zeros(N), "/zeros")
    binary("not", x, y)
    binary("fast_dividef", x, y)
    binary("pow", x.abs(), y)
    for kind in ("add", "subtract", "multiply", "maximum", "less", "fused"):
        binary(kind, x.bfloat16(), y.bfloat16(), "/bf16")
        binary(kind, x.half(), y.half(), "/fp16")
    for kind in ("sqrt", "rsqrt", "log"):
        unary(kind, odd.abs())
    for kind in ("exp", "exp2", "sin", "erf", "tanh", "fast_expf"):
        unary(kind, odd * 10)
    unary("exp2", torch.full((N,), -130.0), "/subnormal")
    unary("floor", odd)
    unary("clamp", odd)
    for kind, out in (("int8", torch.int8), ("int16", torch.int16), ("int32", torch.int32), ("int64", torch.int64)):
        unary(kind, odd * 1000, out=out)
    unary("uint32", odd * 1000, out=torch.int32)
    unary("bf16", odd, out=torch.bfloat16)
    unary("bf16", (1e6 * x).int(), "/int32", out=torch.bfloat16)
    unary("int32", (100 * x).bfloat16(), "/bf16", out=torch.int32)
    for kind in ("fp8e4nv", "fp8e5"):
        unary(kind, 300 * odd)
        unary(kind, 0.01 * x, "/small")


def reductions():
    x = values(3)
    for dtype, name in ((torch.float32, ""), (torch.float16, "/fp16"), (torch.bfloat16, "/bf16")):
        for kind in ("sum", "max", "cumsum", "cumsum_reverse", "sort"):
            unary(kind, x.to(dtype), name)
        unary("argmax", x.to(dtype), name, out=torch.int32)
    unary("sum", torch.full((N,), 100, dtype=torch.int8), "/int8", out=torch.int32)
    unary("rand", x)
    for kind in ("recurrence", "leaky", "product"):
        keep(kind, lambda a, z, k=kind: _combine[(1,)](a, z, k, N), 1 + 0.1 * x if kind == "product" else x)


def arguments():
    x = values(4)
    keep("scalars", lambda a, z: _scalars[(1,)](a, z, 0.1, True, 1, N), x.half())
    keep("float_argument/fp64", lambda a, z: _scalars[(1,)](a, z, 0.1, False, 1, N), x.double(), out=torch.float64)
    keep("one", lambda a, z: _one[(1,)](a, z, 1, N), x)
    keep("two", lambda a, z: _one[(1,)](a, z, 2, N), x)
    keep("grid", lambda a, z: _scalars[(1, 70000)](a, z, 0.1, True, 1, N), x)
    keep("option", lambda a, z: _scalars[(1,)](a, z, 0.1, True, 1, N, num_wraps=4), x)
    keep("warps", lambda a, z: _scalars[(1,)](a, z, 0.1, True, 1, N, num_warps=3), x)
    keep("condition", lambda a, z: _condition[(1,)](a, z, N), x)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        keep(f"atomic/{dtype}", lambda a, z: _atomic[(1,)](a, z, N), x.to(dtype), out=dtype, size=8)
    for kind in ("elementwise", "sum", "max", "other", "block", "block_nan"):
        keep(f"masked/{kind}", lambda a, z, k=kind: _masked[(1,)](a, z, 1000, k, N), x)
    keep("masked/block_nan/bf16", lambda a, z: _masked[(1,)](a, z, 1000, "block_nan", N), x.bfloat16())


@triton.jit
def _one(a, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(a + i) * n.to(tl.int64))


@triton.jit
def _condition(a, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    if x > 0:
        x = -x
    tl.store(out + i, x)


if __name__ == "__main__":
    for part in (dots, elementwise, reductions, arguments):
        part()
    torch.save(RESULTS, FILE)
