"""Search: which precision of each layer, which architecture, is the best by honest measurement."""
