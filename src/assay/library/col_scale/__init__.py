"""Each column of a matrix times a factor of its own."""
