"""Studies of a model with kernels inside: each compares ways to compute the same function, in processes of its own."""
