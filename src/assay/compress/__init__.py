"""Compression of models: weights and activations in fewer bits, and what that costs in accuracy."""
