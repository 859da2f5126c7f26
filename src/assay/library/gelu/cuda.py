"""GELU in CUDA C++: 16-byte vectors where the tensors are aligned, single elements where they are not."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype, vector_width

source = Source("kernel.cu")


def forward(phi, x, out, threads, vectors, load, store):
    n, width = x.numel(), vector_width(x, out)
    source[f"gelu<{ctype(x)}, {width}, {phi}, {vectors}, {load}, {store}>"](
        cdiv(n, threads * width * vectors), threads, x, out, n
    )


def backward(phi, dy, x, out, threads):
    n, width = x.numel(), vector_width(dy, x, out)
    source[f"gelu_backward<{ctype(x)}, {width}, {phi}>"](cdiv(n, threads * width), threads, dy, x, out, n)


TUNE = {
    "threads": [64, 96, 128, 192, 256, 384, 512, 768, 1024],
    "vectors": [1, 2, 4, 8],
    "load": ["plain", "cs", "cg"],
    "store": ["plain", "cs"],
}


@kernel(
    "gelu",
    tune=TUNE,
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def gelu(x, *, out, threads=256, vectors=1, load="plain", store="plain"):
    forward("Erf", x, out, threads, vectors, load, store)


@kernel(
    "gelu_tanh",
    tune=TUNE,
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def gelu_tanh(x, *, out, threads=256, vectors=1, load="plain", store="plain"):
    forward("Tanh", x, out, threads, vectors, load, store)


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
