"""Quantisation to MXINT8: int8 elements that share a power of two in blocks."""
