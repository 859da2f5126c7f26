"""MXINT8 back to floats."""
