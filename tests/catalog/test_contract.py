"""What an op declares is verified when its file is read, before a check draws inputs."""

import pytest

from assay.catalog.reader import contents
from assay.errors import AssayError

HEAD = """
import torch
from assay import Attribute, Axis, Random, Tensor, op

@op(
    axes={"n": Axis()},
    attributes={"k": Attribute(3, (3, 4))},
    outputs={"out": Tensor("n")},
"""
REFERENCE = """
)
def double(x, y=None, z=None, *, k):
    return 2 * x
"""

WRONG = {
    "a given input of an unknown one": (
        'inputs={"x": Tensor("n"), "y": Tensor("n", given=lambda w: w)}',
        "input 'y' is given by a function of 'w', which is not known then",
        "attributes: x, k",
    ),
    "a given input of a later one": (
        'inputs={"x": Tensor("n"), "y": Tensor("n", given=lambda z: z), "z": Tensor("n", given=lambda x: x)}',
        "a function of 'z'",
        "declared above it",
    ),
    "a given input of itself": (
        'inputs={"x": Tensor("n"), "y": Tensor("n", given=lambda y: y)}',
        "a function of 'y'",
        "declared above it",
    ),
    "a given input by what has no names": (
        'inputs={"x": Tensor("n"), "y": Tensor("n", given=torch.sigmoid)}',
        "no function of Python",
        "lambda",
    ),
    "an index of an unknown axis": (
        'inputs={"x": Tensor("n", dtype="int32", index="m")}',
        "input 'x' indexes 'm', which is no axis",
        "one of: n",
    ),
    "a range that misses the format": (
        'inputs={"x": Tensor("n", dtype="uint8", range=(-9, -1))}',
        "the range (-9, -1), and uint8 has no number in it",
        "it may be wider",
    ),
    "a range that misses all formats": (
        'dtypes=("fp16",), inputs={"x": Tensor("n", range=(1e5, 1e6))}',
        "and fp16 has no number in it",
        "it may be wider",
    ),
    "a seed that is no attribute": (
        'inputs={"x": Tensor("n")}, random=Random("key", lambda x, *, k: [(x, 1.0)])',
        "random names the seed 'key', which is no attribute",
        '"key": Attribute(0',
    ),
    "outcomes that take the seed": (
        'inputs={"x": Tensor("n")}, random=Random("k", lambda x, *, k: [(x, 1.0)])',
        "outcomes takes (x, *, k)",
        "let it take (x)",
    ),
    "a second magnitude of other inputs": (
        'inputs={"x": Tensor("n")}, half_magnitude=lambda x: x',
        "half_magnitude takes (x)",
        "let it take (x, k=…)",
    ),
}


def read(folder, body):
    file = folder / "ops.py"
    file.write_text(HEAD + f"    {body}," + REFERENCE)
    return contents(file).verified().ops["double"]


@pytest.mark.parametrize("name", WRONG)
def test_a_declaration_that_no_input_can_follow_is_refused(name, tmp_path):
    body, complaint, advice = WRONG[name]
    with pytest.raises(AssayError) as refused:
        read(tmp_path, body)
    assert complaint in refused.value.what and advice in refused.value.fix


@pytest.mark.parametrize(
    "body",
    [
        'inputs={"x": Tensor("n", dtype="uint8", range=(-9, 300))}',  # is limited to the format
        'inputs={"x": Tensor("n", range=(1e5, 1e6))}',  # in fp32 and bf16
        'inputs={"x": Tensor("n", dtype="bool")}',
        'derived={"m": lambda w: w.n + 1}, inputs={"x": Tensor("n", dtype="int32", index="m")}',
        'inputs={"x": Tensor("n", dtype="int32", index="k")}',
        'inputs={"y": Tensor("n", given=lambda x, k: k * x), "z": Tensor("n", given=lambda y: y), "x": Tensor("n")}',
        'inputs={"x": Tensor("n")}, random=Random("k", lambda x: [(x, 1.0)])',
    ],
)
def test_what_can_be_drawn_is_accepted(body, tmp_path):
    assert read(tmp_path, body).name == "double"
