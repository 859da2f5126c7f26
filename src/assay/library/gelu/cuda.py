"""GELU in CUDA C++: one 16-byte vector per thread where the tensors are aligned, one element where they are not."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype, vector_width

source = Source("kernel.cu")


def forward(phi, x, out, threads):
    n, width = x.numel(), vector_width(x, out)
    source[f"gelu<{ctype(x)}, {width}, {phi}>"](cdiv(n, threads * width), threads, x, out, n)


def backward(phi, dy, x, out, threads):
    n, width = x.numel(), vector_width(dy, x, out)
    source[f"gelu_backward<{ctype(x)}, {width}, {phi}>"](cdiv(n, threads * width), threads, dy, x, out, n)


@kernel(
    "gelu",
    tune={"threads": [128, 256, 512]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def gelu(x, *, out, threads=256):
    forward("Erf", x, out, threads)


@kernel(
    "gelu_tanh",
    tune={"threads": [128, 256, 512]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def gelu_tanh(x, *, out, threads=256):
    forward("Tanh", x, out, threads)


@kernel(
    "gelu_backward",
    tune={"threads": [128, 256, 512]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def gelu_backward(dy, x, *, out, threads=256):
    backward("Erf", dy, x, out, threads)


@kernel(
    "gelu_tanh_backward",
    tune={"threads": [128, 256, 512]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def gelu_tanh_backward(dy, x, *, out, threads=256):
    backward("Tanh", dy, x, out, threads)
