"""What ln_gelu stands for in a model: a LayerNorm and the GELU that alone reads its result."""

from assay.swappable import Swappable

declared = Swappable(fusions={"ln_gelu": ("layernorm", "gelu")})
