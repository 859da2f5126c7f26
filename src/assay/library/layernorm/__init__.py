"""LayerNorm over the rows of a matrix, and its backward pass."""
