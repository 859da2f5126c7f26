"""Studies of models with kernels inside. Each compares ways to compute the same function, in separate processes."""
