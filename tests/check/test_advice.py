"""A finding says what to do about it, in the words of the kernel's language."""

import pytest

from assay import check

NJIT = """
    from numba import njit
    from assay import kernel
    from assay.backends.njit import arrays, load, store

    @njit
    def loop(x, y):
        for i in range(x.size):
            y[i] = max(x[i], 0)

    @kernel("relu")
    def as_numpy(x, *, out):
        loop(x.numpy(), out.numpy())

    @kernel("relu")
    def as_tensors(x, *, out):
        loop(x, out)

    @kernel("relu")
    def outside(x, *, out):
        (y,) = arrays(out)
        for i, v in enumerate(x.flatten().tolist()):
            store(y, i, v)
"""
TRITON = """
    import triton
    import triton.language as tl
    from assay import Axis, Tensor, kernel, op

    AXES = {"rows": Axis(), "cols": Axis(min=1)}

    @op(axes=AXES, inputs={"x": Tensor("rows", "cols")}, outputs={"out": Tensor("rows")})
    def row_max(x):
        return x.amax(-1)

    @triton.jit
    def rows(x, y, cols, BLOCK: tl.constexpr):
        r = tl.program_id(0)
        tl.store(y + r, tl.max(tl.load(x + r * cols + tl.arange(0, BLOCK))))

    @kernel("row_max")
    def unmasked_load(x, *, out):
        rows[(x.shape[0],)](x, out, x.shape[1], triton.next_power_of_2(x.shape[1]))

    @triton.jit
    def copy(x, y, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i, mask=i < n))

    @kernel("relu")
    def unmasked_store(x, *, out):
        copy[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), 64)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "kernel", "what", "advice"),
    [
        ("bf16", "as_numpy", "Numba, has no bf16", "pass arrays(x, out) of assay.backends.njit, and use its load"),
        ("fp16", "as_numpy", "Numba has no fp16 on the CPU", "pass arrays(x, out) of assay.backends.njit, and use"),
        ("bf16", "as_tensors", "a torch tensor was given to a Numba function", "in fp16 and bf16, use its load"),
        ("fp32", "outside", "store() works inside @njit functions only", "put the loop into one"),
    ],
)
def test_a_kernel_in_numba_that_cannot_take_its_tensors_is_told_what_does(dtype, kernel, what, advice, write):
    records = check(write("k.py", NJIT), dtypes=[dtype], workloads=1)
    (reason,) = (r.reason for r in records if r.kernel.endswith(kernel))
    assert what in reason and advice in reason


def test_an_access_without_a_mask_is_told_of_the_mask_and_of_the_lanes_that_a_reduction_includes(write):
    reasons = {r.kernel: r.reason for r in check(write("k.py", TRITON), dtypes=["fp32"], workloads=1)}
    load, store = reasons["row_max/triton:unmasked_load"], reasons["relu/triton:unmasked_store"]
    assert load.startswith("overread") and "→ give that load a mask" in load
    assert "if a reduction includes them (other=, padding_option=)" in load
    assert store.startswith("guard") and "→ give that store a mask or a condition" in store


UNDEFINED = """
    import triton
    import triton.language as tl
    from assay import kernel

    @triton.jit
    def whole(x, y, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n)
        tl.store(y, tl.sum(v.to(tl.float32)))

    @kernel("sum")
    def one_block(x, *, out):
        whole[(1,)](x, out, x.numel(), max(16, triton.next_power_of_2(x.numel())))
"""


def test_a_load_whose_masked_lanes_are_undefined_is_named_where_the_result_is_nan(write):
    (record,) = check(write("k.py", UNDEFINED), workload="n=5,dtype=fp32")
    assert record.failed and record.reason.startswith("nonfinite") and "say what they hold: other=" in record.reason
    assert record.reason.endswith("k.py:9"), record.reason


MAXIMUM = """
    from assay import Axis, Tensor, kernel, op

    @op(
        axes={"rows": Axis(), "cols": Axis()},
        inputs={"x": Tensor("rows", "cols")},
        outputs={"out": Tensor("rows")},
        require=lambda w: w.cols != 1,
    )
    def row_max(x):
        if x.shape[1] > 300:
            raise ValueError("too long")
        return x.max(-1).values

    @kernel("row_max", backend="torch")
    def refuses_too(x, *, out):
        out.copy_(x.amax(-1) if x.shape[1] < 300 else None)

    @kernel("row_max", backend="torch")
    def returns(x, *, out):
        out.zero_()
"""


@pytest.mark.parametrize(
    ("cols", "said", "advice"),
    [
        (0, "IndexError: max(): Expected reduction dim 1", "declare cols as Axis(min=1)"),
        (301, "ValueError: too long", "Axis(max=…) or require= excludes sizes"),
    ],
)
def test_a_reference_that_raises_is_named_with_its_line_and_the_workload(cols, said, advice, write):
    for record in check(write("k.py", MAXIMUM), workload=f"rows=3,cols={cols},dtype=fp32"):
        assert record.status == "inconclusive"
        assert f"op row_max: the reference failed: {said}" in record.reason
        assert f"(on rows=3,cols={cols},dtype=fp32)" in record.reason and "k.py:1" in record.reason
        assert advice in record.reason


def test_a_reference_with_another_shape_than_declared_is_named_on_the_workload_where_it_shows(write):
    declared = "return x.max(-1).values"
    squeezed = MAXIMUM.replace(declared, f"{declared}.squeeze()").replace("cols != 1", "cols != 1 and w.rows > 0")
    for record in check(write("k.py", squeezed), workload="rows=1,cols=5,dtype=fp32"):
        assert record.status == "inconclusive" and "k.py:4" in record.reason
        assert "op row_max: the reference returns shape (), `out` is declared (rows)=(1,) (on rows=1" in record.reason


MEAN = """
    from numba import njit
    from assay import Axis, Tensor, kernel, op

    @op(
        axes={"rows": Axis(), "cols": Axis()},
        inputs={"x": Tensor("rows", "cols")},
        outputs={"out": Tensor("rows")},
    )
    def row_mean(x):
        return x.mean(-1)

    @njit
    def rows(x, y):
        for i in range(x.shape[0]):
            y[i] = x[i].sum() / x.shape[1]

    @kernel("row_mean")
    def divides(x, *, out):
        rows(x.numpy(), out.numpy())

    @kernel("row_mean", backend="torch")
    def assigns(x, *, out):
        out = x.mean(-1)
"""


def test_a_division_by_an_empty_axis_is_told_how_to_exclude_it(write):
    (record,) = check(f"{write('k.py', MEAN)}:row_mean/njit:divides", workload="rows=1,cols=0,dtype=fp32")
    assert record.failed and "ZeroDivisionError: division by zero" in record.reason
    assert "→ return early where cols is 0; if" in record.reason and "declare cols as Axis(min=1)" in record.reason


def test_a_kernel_without_launches_that_writes_nothing_hears_nothing_of_them(write):
    (record,) = check(f"{write('k.py', MEAN)}:row_mean/torch:assigns", workload="rows=3,cols=5,dtype=fp32")
    assert record.reason.startswith("unwritten: nothing was written to `out`") and "launch" not in record.reason
    assert "`out = …` only names another one" in record.reason
