"""What a kernel takes: types from its symbol, sizes from its PTX, and nothing that neither of them says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.isa.names import parameter_types, parts
from assay.isa.parameters import Parameter, parameters

BUILTIN = {
    "float": "f",
    "double": "d",
    "int": "i",
    "unsigned int": "j",
    "long long": "x",
    "unsigned long": "m",
    "short": "s",
    "bool": "b",
    "signed char": "a",
    "unsigned char": "h",
    "__nv_bfloat16": "13__nv_bfloat16",
    "__half": "6__half",
}
"""C++ types, and how the Itanium ABI writes them into a symbol."""


def pointer(pointee):
    text, code = pointee
    return st.sampled_from([(f"{text}*", f"P{code}"), (f"{text} const*", f"PK{code}")])


types = st.recursive(st.sampled_from(list(BUILTIN.items())), lambda inner: inner.flatmap(pointer), max_leaves=3)
PTX = """\
.version 9.0
.target sm_90
.address_size 64
.visible .entry NAME(.param .u64 a, .param .f32 b, .param .align 8 .b8 c[24]) { ret; }
"""


@given(st.lists(types, max_size=8))
def test_a_symbol_gives_the_types_of_its_parameters(taken):
    symbol = "_Z6kernel" + ("".join(code for _, code in taken) or "v")
    assert parameter_types(symbol) == tuple(text for text, _ in taken)


@pytest.mark.parametrize(
    ("symbol", "taken"),
    [
        ("_Z1fIfEvPKT_PS0_x", ("float const*", "float*", "long long")),
        ("_Z4geluI13__nv_bfloat16Li8E3ErfEvPKT_PS2_x", ("__nv_bfloat16 const*", "__nv_bfloat16*", "long long")),
        ("_ZN2ns12_GLOBAL__N_11vIJPfiEEEvDpT_", ("float*", "int")),
        ("_Z1fPFviiEPA4_f", ("void (*)(int, int)", "float (*) [4]")),
        ("_Z1fSt4pairIifE", ("std::pair<int, float>",)),
        ("plain_c", None),
        ("_Z_no_symbol", None),
        ("", None),
    ],
)
def test_templates_namespaces_and_nested_lists_are_read(symbol, taken):
    assert parameter_types(symbol) == taken


@given(st.text())
def test_any_text_is_read_without_an_error(text):
    parameter_types(text)
    parameter_types("_Z" + text)
    parts(text)


@given(st.lists(st.sampled_from(["int", "a<b, c>", "void (*)(int, int)", "x[1, 2]", "f<g<1, 2>, (h)3>"]), max_size=6))
def test_only_the_commas_outside_brackets_separate(items):
    assert parts(", ".join(items)) == tuple(items)


@pytest.mark.parametrize("text", ["a)", "(a", "a<b", "a, ]", "decltype (a < b), c"])
def test_a_list_whose_brackets_do_not_match_is_not_read(text):
    assert parts(text) is None


def test_sizes_come_from_the_ptx_and_types_from_the_symbol():
    symbol = "_Z1fPKff1S"
    known = parameters(symbol, PTX.replace("NAME", symbol).encode())
    assert known == (Parameter(8, "u64", "float const*"), Parameter(4, "f32", "float"), Parameter(24, "b8", "S"))


def test_a_c_function_has_sizes_alone_and_a_cubin_types_alone():
    assert [p.type for p in parameters("c", PTX.replace("NAME", "c").encode())] == ["", "", ""]
    assert parameters("_Z1fPKff", b"") == (Parameter(0, "", "float const*"), Parameter(0, "", "float"))
    assert parameters("c", b"") is None


def test_types_that_do_not_belong_to_the_ptx_are_not_used():
    symbol = "_Z1fPKff"
    assert [p.type for p in parameters(symbol, PTX.replace("NAME", symbol).encode())] == ["", "", ""]
