"""Ops and kernels: one folder per op, and nothing else. `assay.catalog` finds and reads them."""
