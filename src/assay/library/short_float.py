"""Functions for results of 16 bits in Triton, as <assay/short_float.cuh> has them in CUDA C++.

Each has Φ(x) = 1/(1 + 2^(x·p)), p a polynomial of x²: erf, or a true division, would take more time than the memory
does. Outside of the kernels' files, since both languages and several ops use the same coefficients:
tests/library/test_short_float.py proves them over every bf16 and fp16.
"""

import triton
import triton.language as tl


@triton.jit
def _phi_of_2(a):
    """1/(1 + 2^a). A rsqrt squared is three instructions, a division eight."""
    r = tl.rsqrt(1 + tl.exp2(a))
    return r * r


@triton.jit
def short_gelu(x):
    """Within 0.52 rounding units. p is fitted and negative throughout: far out 2^(x·p) becomes 0 or ∞ by itself."""
    t = x * x
    p = (-4.521153229575248e-09 * t + 3.466269618002116e-07) * t - 1.0659651707101148e-05
    p = (p * t + 0.00015179523325059563) * t + 0.00013010887778364122
    p = (p * t - 0.10490541905164719) * t - 2.302168607711792
    return x * _phi_of_2(x * p)


@triton.jit
def shorter_gelu(x):
    """Within 0.75 units with two coefficients fewer: for an x that was rounded on its way, as after a LayerNorm."""
    t = x * x
    p = (-1.8044637499770033e-06 * t + 5.123134178575128e-05) * t + 0.0006640069768764079
    p = (p * t - 0.10611018538475037) * t - 2.301360607147217
    return x * _phi_of_2(x * p)


@triton.jit
def short_gelu_tanh(x):
    """p is −2·log2(e)·√(2/π)·(1 + 0.044715x²)."""
    return x * _phi_of_2(x * (x * x * -0.10294324 - 2.3022082))


@triton.jit
def _bell(t):
    """φ(x) of t = x²: 2^(−x²·log2(e)/2 − log2(√(2π)))."""
    return tl.exp2(t * -0.7213475204444817 - 1.3257480647361593)


@triton.jit
def short_gelu_slope(x):
    """Φ(x) + x·φ(x), within 0.7 units. Near x = −0.75 the two cancel: p is fitted for that and differs from GELU's."""
    t = x * x
    p = (-4.428136968215313e-09 * t + 3.460324364823464e-07) * t - 1.0771087545435876e-05
    p = (p * t + 0.00015440034621860832) * t + 0.00010966146510327235
    p = (p * t - 0.10484837740659714) * t - 2.30220627784729
    return _phi_of_2(x * p) + x * _bell(t)
