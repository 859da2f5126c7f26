"""The right answer of every op, altered in a way that no rounding explains: the judge must notice each alteration in at
least one kind of values that check draws."""

import math

import pytest
import torch

from assay import inputs
from assay.catalog import library
from assay.check import judge, oracle
from assay.workload import Workload

KINDS = ("", "special", "lines", "cancel", "outlier")
SIZES = {
    "attention": "batch=1,heads=2,queries=16,keys=16,dim=16",
    "conv2d": "n=2,c=3,h=9,w=9,k=4,r=3,s=3",
    "int_linear": "m=9,n=24,k=64,bits=8,group=32",
    "mx_linear": "m=9,n=24,k=64,block=32",
    "transpose": "rows=24,cols=40",
}


def sizes(op):
    known = {"n": "n=400", "rows,cols": "rows=12,cols=40"}
    return SIZES.get(op.name) or known.get(",".join(op.axes))


FLOATS = (None, "fp32")
EVERY = [library.find_op(name) for name in library.ops()]
OPS = [op for op in EVERY if sizes(op) and all(t.dtype in FLOATS for t in op.outputs.values())]


def moved(value, there, here):
    """One element in the place of another."""
    flat = value.flatten().clone()
    flat[there] = flat[here]
    return flat.view_as(value)


ALTERED = {
    "an infinity is the largest number": lambda v: torch.where(v.isinf(), v.sign() * torch.finfo(v.dtype).max, v),
    "an infinity is 0": lambda v: v.masked_fill(v.isinf(), 0.0),
    "an infinity has the other sign": lambda v: torch.where(v.isinf(), -v, v),
    "a NaN is 0": lambda v: v.masked_fill(v.isnan(), 0.0),
    "a NaN is infinite": lambda v: v.masked_fill(v.isnan(), math.inf),
    "the sign is lost": lambda v: torch.where(v < 0, -v, v),
    "the other sign": lambda v: torch.where(v != 0, -v, v),
    "the last element is 0": lambda v: moved(v, -1, -1) * torch.arange(v.numel(), 0, -1).gt(1).view_as(v),
    "the first element is in the middle too": lambda v: moved(v, v.numel() // 2, 0),
    "1 % too large": lambda v: v * 1.01,
}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_no_altered_answer_passes_in_all_kinds_of_values(op):
    number = ("fp32", "bf16", "fp16")[OPS.index(op) % 3]
    left, tried = set(), set()
    for kind in KINDS:
        workload = Workload.of(op, f"{sizes(op)},dtype={number}" + (f",values={kind}" if kind else ""))
        drawn = inputs.generate(workload)
        measures = judge.Measures(oracle.oracle(workload, drawn), oracle.baseline(workload, drawn), {})
        right = {n: measures.oracle.exact[n].to(workload.dtype_of(t).torch) for n, t in op.outputs.items()}
        assert judge.judge(right, measures).finding is None, kind
        for name, value in right.items():
            for alteration, alter in ALTERED.items():
                wrong = alter(value).to(value.dtype)
                if wrong.equal(value) or torch.equal(wrong.nan_to_num(7, 8, 9), value.nan_to_num(7, 8, 9)):
                    continue
                tried.add((name, alteration))
                if judge.judge({**right, name: wrong}, measures).finding is not None:
                    left.add((name, alteration))
    assert tried and tried == left
