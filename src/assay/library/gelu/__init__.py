"""GELU, exact and with the tanh approximation, and the backward pass of each."""
