"""Transposition of a matrix."""
