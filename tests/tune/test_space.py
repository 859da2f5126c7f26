"""A space is what its declaration and its constraint say, and a constraint can do nothing but compare."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.catalog.constraint import Constraint, verify
from assay.catalog.reader import kernels_in
from assay.catalog.select import select
from assay.catalog.tunables import refuse_unknown, tunables
from assay.errors import SourceError, UsageError
from assay.tune.space import Space, key, label, space_of
from assay.workload import Workload

NAMES = st.sampled_from(["BLOCK", "num_warps", "stages"])
VALUES = st.lists(st.integers(1, 64), min_size=1, max_size=5, unique=True)
SPACES = st.dictionaries(NAMES, VALUES, min_size=1, max_size=3)


@given(SPACES, st.integers(1, 200))
def test_a_space_holds_exactly_the_combinations_that_fit(values, most):
    names = list(values)
    text = f"{' * '.join(names)} <= {most}"
    space = Space(values, Constraint(text))
    wanted = [dict(zip(names, p, strict=True)) for p in itertools.product(*values.values())]
    wanted = [c for c in wanted if eval(text, {}, dict(c))]
    assert space.configurations == wanted
    assert len({key(c) for c in space.configurations}) == len(wanted) <= space.combinations


@given(SPACES, st.data())
def test_a_neighbour_differs_in_one_tunable_and_fits(values, data):
    space = Space(values, Constraint(f"{next(iter(values))} % 2 == 1 or {next(iter(values))} > 0"))
    one = data.draw(st.sampled_from(space.configurations))
    for near in space.neighbours(one):
        changed = [n for n in values if near[n] != one[n]]
        assert len(changed) == 1 and near in space.configurations
        places = list(values[changed[0]])
        assert abs(places.index(near[changed[0]]) - places.index(one[changed[0]])) == 1 == space.far(one, near)


def test_the_default_belongs_to_the_space_even_if_it_is_not_listed():
    space = Space({"BLOCK": [512, 1024]}, default={"BLOCK": 256})
    assert {"BLOCK": 256} in space.configurations
    assert {"BLOCK": 256} not in Space(
        {"BLOCK": [512]}, Constraint("BLOCK > 300"), default={"BLOCK": 256}
    ).configurations


def test_true_and_one_are_different_values():
    assert key({"parallel": True}) != key({"parallel": 1}) and label({"a": 1, "b": "x"}) == "a=1, b=x"


def test_a_space_that_nobody_could_list_is_refused():
    with pytest.raises(UsageError, match="10000000 combinations"):
        _ = Space({f"p{i}": list(range(10)) for i in range(7)}).configurations


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "BLOCK.__class__",
        "[b for b in (1, 2)]",
        "(lambda: 1)()",
        "BLOCK ** 9 ** 9 ** 9",
        "1 << BLOCK",
        "open('f')",
        "BLOCK = 1",
        "",
        "min(BLOCK, key=abs)",
    ],
)
def test_a_constraint_is_an_expression_over_numbers_and_nothing_else(text):
    with pytest.raises(SourceError, match="fits="):
        verify(text, "f.py:3")


@given(st.text(max_size=30))
def test_any_text_is_either_refused_or_evaluated(text):
    try:
        verify(text, "f.py:3")
    except SourceError:
        return
    try:
        Constraint(text).holds(dict.fromkeys(Constraint(text).names, 3))
    except SourceError as problem:
        assert "cannot be evaluated" in problem.what


KERNEL = """
from assay import kernel
@kernel("gelu", backend="torch", tune={"BLOCK": [64, 128], "parts": [1, 2]}, fits="%s")
def gelu(x, *, out, BLOCK=64, parts=1): ...
"""


def test_a_constraint_may_name_tunables_axes_and_the_cores(write):
    file = write("fits.py", KERNEL % "BLOCK * parts <= 128 and n >= BLOCK and cores > 0 and itemsize == 4")
    ((kernel, op),) = select([file])
    space = space_of(kernel, Workload.of(op, "n=100,dtype=fp32"))
    assert space.default == {"BLOCK": 64, "parts": 1}
    assert space.configurations == [{"BLOCK": 64, "parts": 1}, {"BLOCK": 64, "parts": 2}]
    assert space_of(kernel, Workload.of(op, "n=100,dtype=fp32"), {"parts": 2}).configurations == [
        {"BLOCK": 64, "parts": 2}
    ]


def test_a_constraint_over_an_unknown_name_is_refused_with_the_known_ones(write):
    file = write("fits.py", KERNEL % "BLOCKS > 3")
    with pytest.raises(SourceError, match="fits names 'BLOCKS'") as problem:
        select([file])
    assert "BLOCK, parts, n" in problem.value.fix and problem.value.where.endswith("fits.py:4")


def test_a_constraint_that_is_no_text_is_refused_with_an_example(write):
    text = KERNEL.replace('"%s"', "3")
    with pytest.raises(SourceError, match="fits=3 in @kernel is not a constraint as text"):
        kernels_in(write("fits.py", text))


def test_a_kernel_without_tunables_says_where_to_declare_them():
    ((kernel, op),) = select(["gelu/torch"])
    with pytest.raises(UsageError, match="gelu/torch declares no tunables") as problem:
        space_of(kernel, Workload.of(op))
    assert 'tune={"threads": [256, 512]}' in problem.value.fix


def test_a_bare_cuda_file_is_told_where_tunables_can_stand(tmp_path):
    file = tmp_path / "my_relu.cu"
    file.write_text("// assay: relu<<<1, 32>>>(x, out, n)\n__global__ void relu(const float*, float*, long long) {}\n")
    ((kernel, op),) = select([str(file)], "relu")
    with pytest.raises(UsageError) as problem:
        space_of(kernel, Workload.of(op))
    assert 'Source("my_relu.cu")' in problem.value.fix and "tune=" in problem.value.fix


def test_a_tunable_may_have_the_name_of_a_size_of_its_op():
    """mx_linear's `blocks` is a grid; the op's own `blocks`, the length of `scales`, is never passed by name."""
    ((kernel, op),) = select(["mx_linear/cuda"])
    assert tunables(kernel, op) == ["warps", "blocks"]
    refuse_unknown([(kernel, op)], {"blocks": 396})
