"""Two-dimensional convolution, NCHW."""
