"""A linear layer whose weight is packed in MXINT8."""
