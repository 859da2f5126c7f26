"""Kernels as people write them, in the interpreters: what a GPU does is done here too."""

import pytest

from assay import check

TRITON = """
    import triton
    import triton.language as tl
    from assay import Axis, Tensor, kernel, op

    AXES = {"n": Axis(min=1, max=200, typical=100)}

    @op(axes=AXES, inputs={"x": Tensor("n", specials=())}, outputs={"out": Tensor("n")})
    def next_one(x):
        import torch
        return torch.cat([x[1:], x.new_zeros(1)])

    @triton.jit
    def shifted(x, out, n):
        i = tl.program_id(0)
        tl.store(out + i, tl.load(x + i + 1, mask=i + 1 < n, other=0.0))

    @triton.jit
    def undefined(x, out, n):
        i = tl.program_id(0)
        tl.store(out + i, tl.load(x + i + 1, mask=i + 1 < n))

    @kernel("next_one")
    def with_other(x, *, out):
        shifted[(x.numel(),)](x, out, x.numel())

    @kernel("next_one")
    def without_other(x, *, out):
        undefined[(x.numel(),)](x, out, x.numel())
"""


@pytest.mark.slow
def test_a_scalar_load_gives_zero_in_place_of_what_its_mask_switched_off_if_it_says_so(write):
    found = {r.kernel.split(":")[1]: r.status for r in check(write("k.py", TRITON), dtypes=["fp32"], workloads=4)}
    assert found == {"with_other": "pass", "without_other": "fail"}


LOOPS = """
    import triton
    import triton.language as tl
    from assay import Axis, Tensor, kernel, op

    @op(axes={"n": Axis(min=1)}, inputs={"x": Tensor("n", specials=())}, outputs={"out": Tensor("n")})
    def copied(x):
        return x.clone()

    @triton.jit
    def by_turns(x, out, n, PROGRAMS: tl.constexpr):
        for r in range(tl.program_id(0), n, PROGRAMS):
            for j in tl.range(0, 1, num_stages=1):
                i = r.to(tl.int64) + j
                tl.store(out + i, tl.load(x + i))

    @triton.jit
    def misspelt(x, out, n):
        for r in tl.static_range(2):
            tl.store(out + r, tl.load(x + r.too(tl.int64)), mask=r < n)

    @kernel("copied")
    def typed(x, *, out):
        by_turns[(4,)](x, out, x.numel(), 4)

    @kernel("copied")
    def raises(x, *, out):
        misspelt[(1,)](x, out, x.numel())
"""


@pytest.mark.slow
def test_the_variable_of_a_loop_has_a_type_and_an_error_has_its_own_line(write):
    found = {r.kernel.split(":")[1]: r for r in check(write("k.py", LOOPS), dtypes=["fp32"], workloads=4)}
    assert found["typed"].status == "pass", found["typed"].reason
    assert "AttributeError" in found["raises"].reason and "k.py:20" in found["raises"].reason


AUTOTUNED = """
    import triton
    import triton.language as tl
    from assay import Axis, Tensor, kernel, op

    @op(axes={"n": Axis(min=1)}, inputs={"x": Tensor("n", range=(-9, 9), specials=())}, outputs={"out": Tensor(1)})
    def total(x):
        return x.sum().reshape(1)

    CONFIGS = [triton.Config({"BLOCK": b}) for b in (64, 128, 256, 512)]

    @triton.jit
    def add(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))

    reset = triton.autotune(CONFIGS, key=["n"], reset_to_zero=["out"])(add)
    adding = triton.autotune(CONFIGS, key=["n"])(add)

    @kernel("total")
    def honest(x, *, out):
        out.zero_()
        reset[lambda c: (triton.cdiv(x.numel(), c["BLOCK"]),)](x, out, x.numel())

    @kernel("total")
    def adds_each_time(x, *, out):
        out.zero_()
        adding[lambda c: (triton.cdiv(x.numel(), c["BLOCK"]),)](x, out, x.numel())
"""


def test_an_autotuned_kernel_is_interpreted_and_its_trial_runs_add_to_an_output_that_is_not_reset(write):
    found = {r.kernel.split(":")[1]: r for r in check(write("k.py", AUTOTUNED), dtypes=["fp32"], workloads=4)}
    assert found["honest"].status == "pass", found["honest"].reason
    assert found["adds_each_time"].status == "fail" and found["adds_each_time"].detector == "values"


NUMBA = """
    from numba import cuda
    from assay import Axis, Tensor, kernel, op
    from assay.backends.numba import launch

    RANGE = (-1_000_000, 1_000_000)

    @op(
        axes={"n": Axis(typical=100)},
        inputs={"a": Tensor("n", dtype="int32", range=RANGE), "b": Tensor("n", dtype="int32", range=RANGE)},
        outputs={"out": Tensor("n", dtype="int32")},
        dtypes=["fp32"],
    )
    def fixed_point(a, b):
        return (a.long() * b.long()) >> 16

    @cuda.jit
    def multiply(a, b, out):
        i = cuda.grid(1)
        if i < a.size:
            out[i] = (a[i] * b[i]) >> 16

    @kernel("fixed_point")
    def in_64_bits(a, b, *, out):
        launch(multiply, -(-a.numel() // 64), 64, a, b, out)
"""


@pytest.mark.slow
def test_numba_multiplies_int32_in_64_bits(write):
    (record,) = check(write("k.py", NUMBA), workloads=4)
    assert record.status == "pass", record.reason


def test_the_signature_decides_whether_an_optional_output_is_always_asked_for(write):
    text = """
        from assay import Axis, Tensor, kernel, op

        @op(
            axes={"n": Axis()},
            inputs={"x": Tensor("n", range=(-9, 9))},
            outputs={"out": Tensor("n"), "twice": Tensor("n", optional=True)},
        )
        def doubled(x):
            return x.clone(), 2 * x

        @kernel("doubled", backend="torch")
        def without_a_default(x, *, out, twice):
            out.copy_(x)
            twice.copy_(2 * x)

        @kernel("doubled", backend="torch")
        def with_a_default(x, *, out, twice=None):
            out.copy_(x)
            twice.copy_(2 * x)
    """
    found = {r.kernel.split(":")[1]: r for r in check(write("k.py", text), dtypes=["fp32"], workloads=16)}
    assert found["without_a_default"].status == "pass", found["without_a_default"].reason
    assert "'NoneType' object has no attribute 'copy_'" in found["with_a_default"].reason


def test_numba_s_simulator_takes_no_none_since_numba_on_a_gpu_does_not(write):
    text = """
        from assay import Axis, Tensor, kernel, op
        from assay.backends.numba import launch
        from numba import cuda

        VALUES = {"range": (-9, 9), "specials": ()}

        @op(
            axes={"n": Axis()},
            inputs={"x": Tensor("n", **VALUES), "b": Tensor("n", **VALUES, optional=True)},
            outputs={"out": Tensor("n")},
        )
        def shifted(x, b):
            return x.clone() if b is None else x + b

        @cuda.jit
        def add(x, b, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] = x[i] if b is None else x[i] + b[i]

        @kernel("shifted")
        def as_none(x, b, *, out):
            launch(add, -(-x.numel() // 64), 64, x, b, out)
    """
    (record,) = check(write("k.py", text), workload="n=5,dtype=fp32,without=b")
    assert record.status == "fail" and "out.view(-1)[:0]" in record.reason


ENDLESS = """
    from assay import Axis, Tensor, kernel, op

    @op(axes={"n": Axis()}, inputs={"x": Tensor("n", range=(0, 10), specials=())}, outputs={"out": Tensor("n")})
    def copied(x):
        return x.clone()

    @kernel("copied", backend="torch")
    def loops_beyond(x, *, out):
        while x.numel() and float(x.float().min()) < 0:
            pass
        out.copy_(x)
"""


@pytest.mark.slow
def test_a_loop_that_does_not_end_on_excluded_values_is_no_failure(write):
    (record,) = check(write("k.py", ENDLESS), dtypes=["fp32"], workloads=3)
    assert record.status == "pass", record.reason


BOOLS = """
    from assay import Axis, Tensor, kernel, op

    @op(axes={"n": Axis(min=1)}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n", dtype="bool")})
    def positive(x):
        return x > 0

    @kernel("positive", backend="torch")
    def wrong(x, *, out):
        out.copy_(x >= 0)

    @kernel("positive", backend="torch")
    def not_written(x, *, out):
        out[:-1].copy_(x[:-1] > 0)

    @op(axes={"n": Axis(min=1)}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n", dtype="int64")})
    def far(x):
        import torch
        return torch.arange(x.numel()) + 12_345_678_901

    @kernel("far", backend="torch")
    def off_by_one(x, *, out):
        import torch
        out.copy_(torch.arange(x.numel()) + 12_345_678_902)
"""


def test_wrong_and_missing_booleans_are_told_apart_and_integers_have_all_their_digits(write):
    found = {r.kernel.split(":")[1]: r for r in check(write("k.py", BOOLS), dtypes=["fp32"])}
    assert found["wrong"].detector == "values", found["wrong"].reason
    assert found["not_written"].detector == "unwritten"
    assert "is 12345678902, must be 12345678901" in found["off_by_one"].reason
