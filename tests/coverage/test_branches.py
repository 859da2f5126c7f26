"""The lengths at which a launch goes another way are read from its own code, and two of them are tried at once."""

from pathlib import Path

import pytest

from assay.catalog import library
from assay.catalog.select import select
from assay.check.exploring import EFFORTS
from assay.coverage import branches, constants, plan
from assay.dtype import dtype

HEAD = "from assay import kernel\n\n@kernel('softmax', backend='torch')\n"
SPELLINGS = {
    "unpacked": "def f(x, *, out):\n    m, n = x.shape\n    if m > 128 and n <= 5000: pass\n",
    "several at once": "def f(x, *, out):\n    (m, n), s = x.shape, x.stride(0)\n    if m > 128 or n <= 5000: pass\n",
    "size()": "def f(x, *, out):\n    m, n = x.size()\n    y = 1 if m > 128 else 2 if 5000 >= n else 3\n",
    "indexed": "def f(x, *, out):\n    if x.shape[0] > 128:\n        while x.size(-1) > 5 * 1000: pass\n",
    "defaults": "def f(x, *, out, few=128, longest=5000):\n    m, n = out.shape\n    if m < few: y = n > longest\n",
    "kept": "def f(x, *, out):\n    n = x.shape[1]\n    length = n\n    assert x.shape[-2] != 128 or length == 5000\n",
}


def read(tmp_path: Path, text: str):
    file = tmp_path / "mine.py"
    file.write_text(HEAD + text)
    (kernel, op), *_ = select([file])
    return kernel, op, {(b.axis, b.size) for b in branches.bounds(kernel, op)}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_an_axis_is_known_however_its_length_is_written(tmp_path, text):
    assert read(tmp_path, text)[2] == {("rows", 128), ("cols", 5000)}


@pytest.mark.parametrize(
    "grid",
    [
        "min(triton.cdiv(x.shape[0], 8), 1024)",
        "min(1024, (m + 8 - 1) // 8)",
        "min(-(-m // ROWS), MOST)",
        "tiles if tiles < most else most",
        "min(parts, 1024)",
        "min(cdiv(m, 2 * WIDE), 1024)",
    ],
)
def test_a_grid_with_a_limit_is_a_branch_at_the_rows_that_it_covers(tmp_path, grid):
    assigned = "m, n = x.shape\n    tiles = cdiv(m, 8)\n    parts = (tiles + 1) // 2 if n < 3 else m // 8"
    text = f"def f(x, *, out, most=1024):\n    {assigned}\n    grid = ({grid},)\n"
    file = tmp_path / "mine.py"
    file.write_text(
        f"from assay import kernel\n\nROWS = 8\nWIDE = 4\nMOST = 4 * 256\n@kernel('softmax', backend='torch')\n{text}"
    )
    (kernel, op), *_ = select([file])
    bounds = {(b.axis, b.size) for b in branches.bounds(kernel, op)} - {("cols", 3)}
    assert bounds == (set() if "parts" in grid else {("rows", 8192)})


def test_the_rows_that_a_limited_grid_covers_are_known_for_every_length_that_a_block_may_have(tmp_path):
    text = "def f(x, *, out):\n    m, n = x.shape\n    if n:\n        wide = 8 if n < 3 else 2 * 8\n"
    found = read(tmp_path, text + "        grid = min(cdiv(m, 4 * wide), 1000)\n")[2]
    assert found == {("cols", 3), ("rows", 32_000), ("rows", 64_000)}


@pytest.mark.parametrize("address", ["int_linear/cuda", "mx_linear/cuda"])
def test_a_grid_that_covers_millions_of_rows_is_exceeded_on_a_gpu_in_vectors_too(address):
    """Its blocks go on to further rows, and what they keep of the last ones may be overwritten too early."""
    kernel, op = select([address])[0]
    known = constants.of(kernel, (), branches.bounds(kernel, op))
    rows = plan(op, dtype("bf16"), EFFORTS["cuda"], constants=known).rows
    axes = [dict(r.workload.axes) for r in rows if r.why == "branch m > 4194240"]
    assert [(a["m"], a["k"]) for a in axes] == [(4194241, 2), (4194241, 8)]


def test_the_grid_of_a_launch_comment_is_read_too(tmp_path):
    file = tmp_path / "mine.cu"
    file.write_text("// assay: f<T><<<min(cdiv(rows, 4), 65535), 128>>>(x, out, rows, cols)\n")
    (kernel, op), *_ = select([file], op="softmax")
    assert [(b.axis, b.size) for b in branches.bounds(kernel, op)] == [("rows", 262140)]
    known = constants.of(kernel, (), branches.bounds(kernel, op))
    rows = plan(op, dtype("fp32"), EFFORTS["cuda"], constants=known).rows
    assert any(dict(r.workload.axes)["rows"] == 262141 for r in rows)


@pytest.mark.parametrize("apart", [False, True])
def test_a_grid_that_a_helper_limits_is_exceeded_whatever_a_block_is(tmp_path, apart):
    """By a constant of the module that holds the helper, or of the kernel's own file."""
    helper = "MOST, LEAST = 65535, 1\ndef grid(n, block):\n    return min((n + block - 1) // block, MOST)\n"
    (tmp_path / "grids.py").write_text(helper)
    above = "from grids import grid\n" if apart else helper
    launch = "@kernel('softmax', backend='torch')\ndef f(x, *, out, TILE=16):\n    grid(x.shape[0], TILE)\n"
    file = tmp_path / "mine.py"
    file.write_text(f"from assay import kernel\n{above}\n{launch}")
    (kernel, op), *_ = select([file])
    known = constants.of(kernel)
    assert known.limits == (65535,) and not branches.bounds(kernel, op)
    rows = plan(op, dtype("fp32"), EFFORTS["cuda"], constants=known).rows
    assert {"rows": 16 * 65535 + 1, "cols": 2} in [dict(r.workload.axes) for r in rows]


@pytest.mark.parametrize(
    "text",
    [
        "def f(x, *, out):\n    if x.stride(0) > 128: pass\n",
        "def f(x, *, out):\n    m, n = tuple(x.shape)\n    if m * n > 128 or True == 2: pass\n",
        "def f(x, *, out, flag=True):\n    if x.shape[7] > 128 or x.shape[0] > flag: pass\n",
        "def f(x, *, out):\n    if 3 < x.shape[0] < 128: pass\n",
    ],
)
def test_what_is_no_length_of_an_axis_gives_nothing(tmp_path, text):
    assert read(tmp_path, text)[2] == set()


def test_both_lengths_are_tried_at_once_dense_and_with_rows_apart(tmp_path):
    kernel, op, _ = read(tmp_path, SPELLINGS["unpacked"])
    known = constants.of(kernel, (), branches.bounds(kernel, op))
    rows = plan(op, dtype("fp32"), EFFORTS["cuda"], constants=known).rows
    both = [r for r in rows if r.why == "branch rows > 128, cols > 5000"]
    sizes = {tuple(n for _, n in r.workload.axes): set() for r in both}
    for r in both:
        sizes[tuple(n for _, n in r.workload.axes)].add(bool(r.workload.strided))
    assert sizes == {(129, 5001): {False, True}, (256, 8192): {False}}


@pytest.mark.parametrize("effort", ["cuda", "native", "triton-interpret"])
def test_beyond_the_longest_length_as_many_rows_are_tried_as_fit(tmp_path, effort):
    """A kernel may choose its path for long rows by how many elements there are in all."""
    kernel, op, _ = read(tmp_path, "def f(x, *, out):\n    if x.shape[1] > 5000 or x.shape[1] < 70: pass\n")
    known = constants.of(kernel, (), branches.bounds(kernel, op))
    many = [r.workload for r in plan(op, dtype("fp32"), EFFORTS[effort], constants=known).rows if "many" in r.why]
    most = EFFORTS[effort].typical
    assert {dict(w.axes)["cols"] for w in many} == {5001, 8192}  # blocks and vectors divide the second
    assert all(most // 2 < w.elements <= most for w in many)


def test_softmax_in_cuda_reaches_its_kernel_for_many_long_rows():
    kernel, op = select(["softmax/cuda"])[0]
    known = constants.of(kernel, (), branches.bounds(kernel, op))
    rows = plan(op, dtype("bf16"), EFFORTS["cuda"], constants=known).rows
    assert any(dict(r.workload.axes)["rows"] > 128 and dict(r.workload.axes)["cols"] > 16384 for r in rows)


SHUFFLE = """
from assay import Axis, Tensor, kernel, op

@op(axes={"h": Axis(typical=5), "w": Axis(typical=7)}, derived={"oh": lambda w: 3 * w.h},
    inputs={"x": Tensor("h", "w")}, outputs={"out": Tensor("oh", "w")}, dtypes=("fp32",))
def thrice(x):
    return x.repeat(3, 1)

@kernel("thrice", backend="torch")
def few_blocks(x, *, out, threads=32, most=40):
    launch(min(-(-out.numel() // threads), most), threads)
"""


def test_a_grid_of_few_blocks_is_exceeded_by_the_elements_of_a_tensor(tmp_path):
    """Where most workloads are small, as in Numba's simulator."""
    (tmp_path / "mine.py").write_text(SHUFFLE)
    ((kernel, op),) = select([tmp_path / "mine.py"])
    known = constants.of(kernel)
    assert known.limits == (40,)
    rows = [r.workload for r in plan(op, dtype("fp32"), EFFORTS["numba-sim"], constants=known).rows]
    assert any(1280 < 3 * w.sizes.h * w.sizes.w < 1500 and w.values == "normal" for w in rows)


@pytest.mark.parametrize("effort", ["native", "numba-sim"])
def test_values_near_a_constant_are_tried_on_workloads_with_elements(tmp_path, effort):
    (tmp_path / "mine.py").write_text(SHUFFLE + "    out.div_(1 + 1e-9)\n")
    ((kernel, op),) = select([tmp_path / "mine.py"])
    for seed in range(8):
        rows = plan(op, dtype("fp32"), EFFORTS[effort], seed, constants.of(kernel)).rows
        assert all(r.workload.elements >= 100 for r in rows if r.workload.values.startswith("near:"))
        assert any(r.workload.values == "near:1e-09" for r in rows)


@pytest.mark.parametrize("address", ["rmsnorm/cuda", "layernorm/cuda"])
def test_a_path_for_long_rows_that_blocks_divide_is_taken(address):
    """rmsnorm/cuda@44:49:arithmetic:0 survived on an H200: no row longer than 32,768 was a multiple of 4,096."""
    kernel, op = select([address])[0]
    known = constants.of(kernel, (), branches.bounds(kernel, op))
    for number in kernel.dtypes or ("fp32", "bf16"):
        rows = plan(op, dtype(number), EFFORTS["cuda"], constants=known).rows
        whole = [w for r in rows if (w := r.workload).sizes.cols > 32768 and w.sizes.cols % (1024 * 8) == 0]
        assert any(not w.strided and not w.offset and not w.without for w in whole)


def test_an_empty_workload_visits_nothing_but_its_emptiness():
    op = library.ops()["rmsnorm"]
    for row in plan(op, dtype("fp32"), EFFORTS["cuda"]).rows:
        if dict(row.workload.axes)["rows"] == 0:
            assert all(("rows", "0") in pair or ("cols", "0") in pair for pair in row.pairs)


@pytest.mark.parametrize("name", ["rmsnorm", "softmax", "transpose", "layernorm"])
def test_rows_that_lie_apart_are_visited_only_where_there_are_several(name):
    op = library.ops()[name]
    rows = plan(op, dtype("fp32"), EFFORTS["cuda"]).rows
    apart = [r for r in rows if any(f == "layout of x" and level == "rows" for pair in r.pairs for f, level in pair)]
    assert apart
    first = next(iter(op.axes))
    assert all(dict(r.workload.axes)[first] > 1 for r in apart)
    assert any(dict(r.workload.axes)["cols"] > 16384 for r in apart), "long rows too"


@pytest.mark.parametrize("effort", ["cuda", "native", "triton-interpret"])
def test_an_axis_is_a_multiple_of_another_and_of_an_attribute_that_is_no_power_of_two(effort):
    rows = plan(library.ops()["mx_dequantize"], dtype("fp32"), EFFORTS[effort]).rows
    sizes = [dict(r.workload.axes) | dict(r.workload.attributes) for r in rows if r.why == "multiples"]
    assert any(s["cols"] == 5 * s["rows"] for s in sizes) and any(s["rows"] == 5 * s["cols"] for s in sizes)
    assert any(s["cols"] == 5 * s["block"] and s["block"] & (s["block"] - 1) for s in sizes)


@pytest.mark.parametrize("effort", ["cuda, triton", "native", "triton-interpret"])
def test_a_path_for_long_rows_is_taken_with_several_rows_that_lie_apart(effort):
    kernel, op = select(["layernorm/triton"])[0]
    known = constants.of(kernel, (), branches.bounds(kernel, op))
    rows = [
        r.workload
        for r in plan(op, dtype("fp32"), EFFORTS[effort], constants=known).rows
        if r.why == "branch cols > 32768"
    ]
    assert {(w.sizes.rows, w.sizes.cols, w.values) for w in rows} == {(2, 32769, "normal"), (2, 65536, "normal")}
    assert {("x" in w.strided, "weight" in w.without) for w in rows} >= {(False, False), (True, True)}


def test_a_derived_size_is_no_axis(tmp_path):
    """`x.numel()` of a tensor whose only length is derived; the check of such a kernel ended in a KeyError."""
    file = tmp_path / "mine.py"
    file.write_text(
        "from assay import Axis, Tensor, kernel, op\n\n"
        "@op(axes={'quads': Axis()}, derived={'n': lambda w: 4 * w.quads}, inputs={'x': Tensor('n')},"
        " outputs={'out': Tensor('n')})\ndef same(x):\n    return x\n\n"
        "@kernel('same', backend='torch')\ndef f(x, *, out):\n    if x.numel() > 5000: pass\n"
    )
    (kernel, op), *_ = select([file])
    assert branches.bounds(kernel, op) == ()
