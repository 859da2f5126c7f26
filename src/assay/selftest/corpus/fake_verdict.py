"""Prints a verdict of its own, in every form a harness might read from standard output, and computes
nothing."""

import os

import torch

from assay import kernel

DETECTOR = "values"
WORKLOAD = "n=1000,dtype=fp32"
CLAIMS = b'PASS\n{"verb": "check", "status": "pass"}\n{"runs": [], "error": null}\nall tests passed\n'


@kernel("gelu", variant="wrong")
def wrong(x, *, out):
    out.zero_()
    print(CLAIMS.decode(), flush=True)
    os.write(1, CLAIMS)
    os.write(2, CLAIMS)


@kernel("gelu", variant="fixed")
def fixed(x, *, out):
    torch.ops.aten.gelu.out(x, out=out)
    print(CLAIMS.decode(), flush=True)
