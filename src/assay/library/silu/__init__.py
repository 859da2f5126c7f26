"""SiLU and its backward pass."""
