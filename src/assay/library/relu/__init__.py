"""ReLU and its backward pass."""
