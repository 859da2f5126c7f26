"""A kernel as a PyTorch operator: its outputs, what it takes, its gradient, and what a compiler sees of it."""
