"""An error names the verb that was typed, and the user's own ops and files."""

import pytest

import assay as product
from assay.errors import UsageError
from own_op import KERNEL, OP

CUDA = "template <typename T> __global__ void summed(const T* x, T* y, long long rows, long long cols) {}\n"
LAUNCHED = "// assay: summed<T><<<cdiv(rows, 256), 256>>>(x, out, rows, cols)\n" + CUDA
USING = 'from assay import kernel\n@kernel("row_sum", backend="torch")\ndef other(x, *, out): ...\n'


@pytest.mark.parametrize("verb", ["check", "bench", "run", "list"])
def test_a_bare_cuda_file_without_its_op_is_told_the_command_that_works(verb, assay, write, tmp_path):
    write("my_ops.py", OP)
    write("summed.cu", LAUNCHED)
    done = assay(verb, "summed.cu", cwd=tmp_path)
    assert done.returncode == 2 and "summed.cu: which op does it compute?" in done.stderr
    assert f"→ assay {verb} summed.cu --op my_ops.py:row_sum\n" in done.stderr


def test_the_likeliest_of_several_ops_comes_first(assay, write, tmp_path):
    (tmp_path / "kernels").mkdir()
    write("my_ops.py", OP + OP.replace("row_sum", "scale"))
    write("kernels/row_sums.cu", LAUNCHED)
    done = assay("run", "kernels/row_sums.cu", "my_ops.py", cwd=tmp_path)
    assert "assay run kernels/row_sums.cu --op my_ops.py:row_sum, or my_ops.py:scale" in done.stderr
    alone = assay("run", "kernels/row_sums.cu", cwd=tmp_path)
    assert "assay run kernels/row_sums.cu --op sum, or FILE.py:NAME for an op of yours" in alone.stderr


def test_in_python_it_is_an_argument(write):
    ops, file = write("my_ops.py", OP), write("summed.cu", LAUNCHED)
    with pytest.raises(UsageError) as refused:
        list(product.check(file))
    assert refused.value.fix == f'say op="{ops}:row_sum"'


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (
            ("bench", "using.py"),
            'my_ops.py declares it: assay bench using.py my_ops.py, or write @kernel("my_ops.py:row_sum")',
        ),
        (("check", "summed.cu", "--op", "row_sum"), "my_ops.py declares it: --op my_ops.py:row_sum"),
        (("check", "summed.cu", "--op", "row_sums"), "did you mean row_sum"),
        (("run", "my_ops.py"), "PyTorch's own is my_ops.py:row_sum/torch"),
        (
            ("check", "bare.cu", "--op", "my_ops.py:row_sum"),
            "`// assay: summed<T><<<cdiv(rows, 256), 256>>>(x, out, rows, cols)`",
        ),
    ],
)
def test_an_op_that_is_not_found_is_looked_for_beside_the_kernel(arguments, advice, assay, write, tmp_path):
    for name, text in (("my_ops.py", OP), ("using.py", USING), ("summed.cu", LAUNCHED), ("bare.cu", CUDA)):
        write(name, text)
    done = assay(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and advice in done.stderr, done.stderr


def test_looking_beside_a_kernel_runs_nothing_and_survives_what_it_finds(assay, write, tmp_path):
    write("broken.py", "from assay import op\ndef f(:\n")
    write("loud.py", f"raise SystemExit('it was run')\n{OP}{KERNEL.format(name='mine')}")
    write("summed.cu", LAUNCHED)
    done = assay("check", "summed.cu", cwd=tmp_path)
    assert "assay check summed.cu --op loud.py:row_sum" in done.stderr and "it was run" not in done.stderr
