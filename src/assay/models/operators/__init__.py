"""Kernels as PyTorch operators: outputs, accepted inputs, gradients, and what a compiler sees of them."""
