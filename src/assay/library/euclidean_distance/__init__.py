"""The Euclidean distance between the rows of two matrices."""
