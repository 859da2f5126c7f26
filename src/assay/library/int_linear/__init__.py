"""A linear layer whose weight is packed in integers of 8 or 4 bits with a scale per group."""
