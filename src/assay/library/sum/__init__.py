"""The sum of a vector."""
