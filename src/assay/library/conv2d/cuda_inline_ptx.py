"""Convolution in CUDA C++, tiled as in cuda.py, loads and multiply-adds in PTX (struct Ptx of kernel.cu)."""

from assay import kernel
from assay.library.conv2d.cuda import launch


@kernel("conv2d", tune={"warps": [2, 4, 8], "products": [36, 72, 144]})
def conv2d(x, weight, bias, *, stride, padding, out, warps=8, products=72):
    launch("Ptx", x, weight, bias, out, stride, padding, warps, products)
