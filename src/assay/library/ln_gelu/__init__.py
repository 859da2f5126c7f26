"""GELU of a LayerNorm in one pass, and its backward pass."""
