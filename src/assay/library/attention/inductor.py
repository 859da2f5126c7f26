"""Attention compiled by inductor from the formula: in many shapes it finds the pattern and calls a fused kernel."""

from torch import compile

from assay import kernel
from assay.library.attention.torch import naive

_attention = compile(naive, fullgraph=True, dynamic=False)  # the pattern is found in static shapes


@kernel("attention", returns=True)
def attention(q, k, v, *, causal):
    return _attention(q, k, v, bool(causal))
