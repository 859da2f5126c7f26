"""The launch comment of a bare .cu file."""

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.backends.launch_comment import evaluate, parse
from assay.errors import SourceError

NAMES = {"n": 1000, "rows": 3, "eps": 1e-5}


def value(text, **names):
    return evaluate(ast.parse(text, mode="eval").body, NAMES | names, "k.cu:1")


@given(st.integers(0, 1 << 40), st.integers(1, 4096))
def test_arithmetic_rounds_down_and_cdiv_up(n, block):
    assert value("n / b", n=n, b=block) == n // block
    assert value("cdiv(n, b)", n=n, b=block) * block >= n > (value("cdiv(n, b)", n=n, b=block) - 1) * block


@pytest.mark.parametrize(
    ("text", "kind"),
    [("int(n)", np.int32), ("unsigned(n)", np.uint32), ("long(n)", np.int64), ("double(eps)", np.float64)],
)
def test_a_cast_passes_another_type(text, kind):
    assert type(value(text)) is kind and value(text) == kind(eval(text.partition("(")[2][:-1], {}, NAMES))


@pytest.mark.parametrize("text", ["int(n)", "unsigned(n)", "int(0 - n)"])
def test_a_cast_that_loses_digits_is_refused(text):
    with pytest.raises(SourceError, match=r"cannot hold -?5000000000") as refused:
        value(text, n=5_000_000_000)
    assert refused.value.where == "k.cu:1" and "long long" in refused.value.fix


def test_a_cast_takes_one_number():
    for text in ("int(n, n)", "int((n, n))", "short(n)"):
        with pytest.raises(SourceError):
            value(text)


def test_a_launch_has_a_name_a_configuration_and_arguments():
    comment = parse("f<T, 4><<<(cdiv(n, 256), rows), 256, 4096>>>(x, out, int(n))", "k.cu:1")
    assert comment.name == "f<T, 4>" and len(comment.configuration) == len(comment.arguments) == 3
    assert evaluate(comment.configuration[0], NAMES, "k.cu:1") == (4, 3)
