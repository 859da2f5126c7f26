"""ReLU in CUDA C++: one 16-byte vector per thread where the tensors are aligned, else one element."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype, vector_width

source = Source("kernel.cu")


@kernel(
    "relu",
    tune={"threads": [128, 256, 512]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def relu(x, *, out, threads=256):
    n, width = x.numel(), vector_width(x, out)
    source[f"relu<{ctype(x)}, {width}>"](cdiv(n, threads * width), threads, x, out, n)


@kernel(
    "relu_backward",
    tune={"threads": [128, 256, 512]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 32},
)
def relu_backward(dy, x, *, out, threads=256):
    n, width = x.numel(), vector_width(dy, x, out)
    source[f"relu_backward<{ctype(x)}, {width}>"](cdiv(n, threads * width), threads, dy, x, out, n)
