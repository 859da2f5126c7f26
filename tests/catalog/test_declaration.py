"""`assay list OP` prints what a kernel of the op is given and must write."""

import pytest

from assay import NAN, Attribute, Axis, Tensor, op
from assay.catalog import library
from assay.catalog.declaration import parts, signature
from command import assay


@op(
    axes={"rows": Axis(typical=64), "cols": Axis(min=1, max=99, typical=64)},
    inputs={
        "x": Tensor("rows", "cols", range=(-10, 10), specials=(NAN,), strided="all"),
        "i": Tensor("rows", dtype="int64", index="cols"),
        "w": Tensor("cols", optional=True, form="row_stochastic"),
    },
    attributes={"eps": Attribute(1e-5, (1e-5, 1e-3))},
    outputs={"out": Tensor("rows", "cols"), "top": Tensor("rows", dtype="fp32", optional=True)},
    aliases={"out": "x"},
)
def mine(x, i, w, *, eps):
    return x, x.amax(1)


def test_every_argument_is_described():
    assert signature(mine) == "mine(x, i, w, *, eps, out, top=None)"
    assert [(p.name, p.what, p.description) for p in parts(mine)] == [
        ("x", "input", "rows × cols; any strides; -10 to 10, NaN"),
        ("i", "input", "rows; int64; 0 to cols − 1"),
        ("w", "input", "cols; optional; -10000 to 10000, NaN, ∞, −∞; row stochastic"),
        ("eps", "attribute", "1e-05, also 0.001"),
        ("out", "output", "rows × cols; may be the memory of x"),
        ("top", "output", "rows; fp32; optional"),
        ("rows", "axis", "at least 0, typically 64"),
        ("cols", "axis", "at least 1, at most 99, typically 64"),
    ]


@pytest.mark.parametrize("op", library.ops().values(), ids=library.ops())
def test_every_op_of_the_library_is_described_whole(op):
    described = [p.name for p in parts(op)]
    assert described == [*op.inputs, *op.attributes, *op.outputs, *op.axes]
    assert all(p.description for p in parts(op))


def test_an_op_that_is_named_is_described_in_a_narrow_terminal_too():
    shown = assay("list", "layernorm", env={"COLUMNS": "60"}).out
    assert "layernorm(x, weight, bias, *, eps, out, mean=None," in shown and "1e-05, also 1e-06, 1e-12" in shown
    assert "layernorm(x" not in assay("list").out
