"""The launches in a kernel's source are found however they are written, and shapes of all magnitudes are proposed."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.catalog import library
from assay.catalog.select import select
from assay.check.exploring import EFFORTS
from assay.coverage import launch_sites
from assay.dtype import dtype

HEAD = """
import triton, triton.language as tl
from numba import cuda
from assay import kernel
from assay.backends.cuda import Source
from assay.backends.numba import launch

source = Source("mine.cu")

@triton.jit
def _short(x, y): pass

@triton.jit
def _long(x, y): pass

@cuda.jit
def _numba(x, y): pass

def helper(x, out):
    _long[(1,)](
        x,
        out,
    )

def not_called(x, out):
    _long[(2,)](x, out)
"""
FORMS = {
    "triton": ("    if x.numel(): _short[(1,)](x, out)\n    else: helper(x, out)\n", {"_short", "_long"}),
    "cuda": (
        "    T = 'float'\n    source[f'wide<{T}>'](1, 1, x, out)\n    source['plain'](1, 1, x, out)\n",
        {"wide", "plain"},
    ),
    "numba": ("    launch(_numba, 1, 1, x, out)\n    _numba[1, 1](x, out)\n", {"_numba"}),
    "torch": ("    out.copy_(x)\n", set()),
}


@pytest.mark.parametrize("backend", FORMS)
def test_launches_are_found_in_the_function_and_in_what_it_calls(write, backend):
    body, names = FORMS[backend]
    write("mine.cu", "")
    file = write("mine.py", f'{HEAD}\n@kernel("relu", backend="{backend}")\ndef mine(x, *, out):\n{body}')
    ((kernel, _),) = select([file])
    found = launch_sites.sites(kernel)
    assert {site.name for site in found} == names
    text = file.read_text().splitlines()
    assert all(site.name in text[site.line - 1] and ")" in text[site.last - 1] for site in found)


def test_a_launch_of_several_lines_has_all_of_them(write):
    file = write("mine.py", f'{HEAD}\n@kernel("relu", backend="triton")\ndef mine(x, *, out):\n    helper(x, out)\n')
    ((kernel, _),) = select([file])
    (site,) = launch_sites.sites(kernel)
    assert site.last - site.line == 3


OPS = sorted(library.ops())


@given(name=st.sampled_from(OPS), seed=st.integers(0, 9))
def test_shapes_are_within_the_contract_and_come_in_order_of_their_cost(name, seed):
    op = library.ops()[name]
    rows = launch_sites.shapes(op, dtype(op.dtypes[0]), EFFORTS["cuda"], seed, ())
    assert rows and all(row.workload.allowed and row.workload.elements for row in rows)
    assert all(a.cost <= b.cost for a, b in itertools.pairwise(rows))
    assert len({str(row.workload) for row in rows}) == len(rows)


@pytest.mark.parametrize("name", ["layernorm", "softmax", "transpose", "mx_linear"])
def test_every_two_axes_are_long_together(name):
    op = library.ops()[name]
    rows = launch_sites.shapes(op, dtype("bf16"), EFFORTS["cuda"], 0, ())
    for two in itertools.combinations(op.axes, 2):
        if any(op.axes[axis].max < 1000 for axis in two):
            continue
        assert any(all(dict(row.workload.axes)[axis] >= 1000 for axis in two) for row in rows), two
