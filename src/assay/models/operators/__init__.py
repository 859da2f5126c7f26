"""A kernel as an operator of PyTorch's: its outputs, what it takes, its gradient, and what a compiler sees of it."""
