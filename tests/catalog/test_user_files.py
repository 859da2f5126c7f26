"""A user's own file is a first-class citizen, and every mistake in it is met with a message, not a traceback."""

import json
import os
import sys

import pytest

from assay import check, host
from assay.errors import AssayError
from assay.worker import load

GOOD = """
    import torch
    from assay import kernel

    @kernel("gelu")
    def mine(x, *, out):
        out.copy_(torch.nn.functional.gelu(x))
"""
OWN_OP = '''
    import torch
    import triton                      # never imported by the parent: the op does not need it
    from assay import Axis, Tensor, kernel, op

    SCALE = 3.0

    def helper(x):
        return x * SCALE

    @op(axes={"n": Axis()}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n")}, magnitude=lambda x: 3 * x.abs())
    def triple(x):
        """Three times x."""
        return helper(x)

    @kernel("triple", backend="torch")
    def good(x, *, out):
        torch.mul(x, 3, out=out)

    @kernel("triple", backend="torch", variant="bad")
    def bad(x, *, out):
        torch.mul(x, 3, out=out)
        if x.numel() >= 17:
            out[16] = 0
'''
CUDA = """
    // assay: mine<T><<<cdiv(n, 128), 128>>>(x, out, n)
    #include <assay/vector.cuh>
    template <typename T> __global__ void mine(const T* x, T* y, long long n) {
      const long long i = blockIdx.x * 128ll + threadIdx.x;
      if (i < n) y[i] = rounded<T>(widen(x[i]));
    }
"""


def records(done):
    document = json.loads(done.stdout)
    assert document["schema"] == 2
    return document["records"]


def test_one_decorator_is_enough_and_it_works_from_any_directory(assay, write, tmp_path):
    write("mine.py", GOOD)
    done = assay("check", "mine.py", "--dtype", "bf16", "--workloads", "5", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (record,) = records(done)
    assert (record["kernel"], record["status"]) == ("gelu/torch:mine", "pass")
    assert record["evidence"]["workloads"] > 5  # and the typical one with its neighbours
    assert record["source"]["file"].endswith("mine.py") and record["provenance"]["packages"]["torch"]


@pytest.mark.slow
def test_an_op_of_the_users_own_finds_the_wrong_kernel_and_shrinks_it(assay, write, tmp_path):
    write("own.py", OWN_OP)
    done = assay("check", "own.py", "--dtype", "fp32", "--workloads", "20", "--json", cwd=tmp_path)
    assert done.returncode == 1
    good, bad = sorted(records(done), key=lambda r: r["kernel"] != "triple/torch:good")
    assert good["status"] == "pass"
    assert bad["status"] == "fail" and bad["workload"] == "n=17,dtype=fp32"
    assert "`out`[16] is 0" in bad["reason"]
    again = assay(*bad["replay"].split()[1:], "--json", cwd=tmp_path)
    assert again.returncode == 1
    assert [r["status"] for r in records(again) if r["kernel"] == "triple/torch:bad"] == ["fail"]


def test_a_bare_cu_file_is_compiled_where_there_is_no_gpu(assay, write, tmp_path):
    from assay import host

    write("mine.cu", CUDA)
    done = assay("check", "mine.cu", "--op", "gelu", "--target", "sm_80", "--dtype", "fp16", "--json", cwd=tmp_path)
    (record,) = records(done)
    if host.runs_on_gpu():
        assert record["status"] == "fail"  # it is the identity
        return
    assert record["status"] == "compiled"
    (artifact,) = record["artifacts"]
    assert artifact["name"] == "mine<__half>" and artifact["target"] == "sm_80"
    assert artifact["ptx_bytes"] > 500 and artifact["cubin_bytes"] > 1000 and len(artifact["text_hash"]) == 16


BAD = {
    "no such op": (
        'from assay import kernel\n@kernel("gelo")\ndef f(x, *, out): ...\n',
        "f.py:3: no op called 'gelo'",
        "gelu",
    ),
    "syntax error": ("from assay import kernel\ndef f(x:\n", "f.py:2:", "fix the syntax"),
    "no kernel": ("x = 1\n", "no kernel in this file", "@kernel"),
    "no output": (
        'from assay import kernel\n@kernel("gelu")\ndef f(x): ...\n',
        "f.py:3: f does not take the output `out`",
        "def f(x, *, out)",
    ),
    "too few inputs": (
        'from assay import kernel\n@kernel("axpy")\ndef f(*, out): ...\n',
        "axpy has 2 inputs",
        "def f(x, y",
    ),
    "unknown parameter": (
        'from assay import kernel\n@kernel("gelu")\ndef f(x, *, out, wat): ...\n',
        "asks for `wat`",
        "it gives",
    ),
    "not a literal": (
        'from assay import kernel\nN="gelu"\nN+="_tanh"\n@kernel(N)\ndef f(x, *, out): ...\n',
        "literals, and constants",
        "@kernel",
    ),
    "no such backend": (
        'from assay import kernel\n@kernel("gelu", backend="jax")\ndef f(x, *, out): ...\n',
        "no backend called 'jax'",
        "one of",
    ),
    "an axis called like a part of a workload": (
        "from assay import Axis, Tensor, kernel, op\n"
        '@op(axes={"values": Axis()}, inputs={"x": Tensor("values")}, outputs={"out": Tensor("values")})\n'
        "def g(x): return x\n@kernel('g')\ndef f(x, *, out): ...\n",
        "'values' is a part of every workload already",
        "another name",
    ),
    "broken op": (
        "from assay import op, Tensor\n@op(axes={}, inputs={}, outputz={})\ndef g(): ...\n"
        "from assay import kernel\n@kernel('g')\ndef f(*, out): ...\n",
        "the op's declaration failed",
        "@op",
    ),
}


OP = """
from assay import Axis, Tensor, op

@op(axes={"n": Axis()}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n")})
def twice(x):
    return 2 * x
"""


def test_a_kernel_names_its_op_together_with_the_file_that_declares_it(write, tmp_path):
    """The path is taken from the kernel's folder, and that file need not be named in the command."""
    from assay.catalog.called import called
    from assay.catalog.select import select

    write("ops.py", OP)
    (tmp_path / "mine").mkdir()
    source = 'from assay import kernel\n\n@kernel("../ops.py:twice", backend="torch")\ndef doubled(x, *, out): ...\n'
    ((kernel, op),) = select([write("mine/doubled.py", source)])
    assert (kernel.name, op.source) == ("twice/torch:doubled", str(tmp_path / "ops.py"))
    assert called(kernel, op) == str(tmp_path / "mine/doubled.py")
    ((bare, op),) = select([write("twice.cu", CUDA)], op=str(tmp_path / "ops.py") + ":twice")
    assert (bare.name, op.source) == ("twice/cuda:twice", str(tmp_path / "ops.py"))
    assert called(bare, op).endswith(f"--op {tmp_path / 'ops.py'}:twice")
    for wanted, complaint in (("ops.py:thrice", "declares no op called 'thrice'"), ("none.py:twice", "no file called")):
        with pytest.raises(AssayError, match=complaint):
            select([write("wrong.py", source.replace("../ops.py:twice", wanted))])


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_met_with_the_line_and_what_to_do(name, assay, write, tmp_path):
    source, complaint, advice = BAD[name]
    (tmp_path / "f.py").write_text(source)
    done = assay("check", "f.py", cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr and advice in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_a_compilers_complaint_is_quoted_with_file_and_line(assay, write, tmp_path):
    write("bad.cu", CUDA.replace("widen(x[i])", "wide(x[i])"))
    done = assay("check", "bad.cu", "--op", "gelu", "--dtype", "fp32", cwd=tmp_path)
    assert done.returncode == 1
    text = " ".join(done.stdout.split())
    assert 'bad.cu(6): error: identifier "wide" is undefined' in text
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("comment", "complaint"),
    [
        ("mine<T>(x, out, n)", "cannot be read"),
        ("mine<T><<<cdiv(m, 2), 1>>>(x, out, n)", "names 'm'"),
        ("mine<T><<<open('f'), 1>>>(x, out, n)", "may not say"),
        ("mine<T><<<1, 1>>>(x, out, stride(x, 5))", "asks what the tensor does not have"),
        ("mine<type(n)><<<1, 1>>>(x, out, n)", "type(n), which is no tensor"),
    ],
)
def test_a_launch_comment_that_makes_no_sense_is_explained(comment, complaint, assay, write, tmp_path):
    write("odd.cu", CUDA.replace("mine<T><<<cdiv(n, 128), 128>>>(x, out, n)", comment))
    done = assay("check", "odd.cu", "--op", "gelu", "--dtype", "fp32", cwd=tmp_path)
    assert complaint in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("check",), "check what?"),
        (("check", "gelu/jax"), "no kernel called 'gelu/jax'"),
        (("check", "nothing.py"), "no file called"),
        (("check", "x.cu"), "no file called x.cu"),
        (("check", "gelu", "--dtype", "fp8"), "no dtype called 'fp8'"),
        (("check", "gelu", "--target", "sm90"), "no target called 'sm90'"),
        (("check", "gelu", "--target", "sm_99"), "no target called 'sm_99'"),
        (("inspect", "gelu/cuda", "--target", "sm_99"), "no target called 'sm_99'"),
        (("check", "gelu", "--target", "sm_80a"), "no target called 'sm_80a'"),
        (("check", "gelu/torch", "--workload", "n=5,m=2"), "gelu has no 'm'"),
        (("check", "gelu/torch", "--param", "BLOCK"), "not name=value"),
        (("check", "gelu/triton", "--param", "BLOK=2"), "gelu/triton has no tunable 'BLOK'"),
        (("bench", "gelu/njit", "--param", "BLOCK=2"), "gelu/njit has no tunable 'BLOCK'"),
        (("inspect", "gelu/triton", "--param", "BLOK=2"), "gelu/triton has no tunable 'BLOK'"),
        (("selftest", "no_such_entry"), "no_such_entry"),
    ],
)
def test_wrong_use_exits_with_2_and_says_what_to_do(arguments, complaint, assay, tmp_path):
    done = assay(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert complaint in done.stderr and "→" in done.stderr
    assert done.stdout == ""


TUNED = """
from assay import kernel

@kernel("axpy", backend="torch", tune={"factor": [1, 2]})
def mine(x, y, *, alpha, out, factor=1):
    out.copy_(alpha * x + y).mul_(factor)
"""


@pytest.mark.slow
def test_a_tunable_goes_to_the_kernels_that_have_it_and_stands_in_the_record(write, tmp_path, monkeypatch):
    """PyTorch's kernel beside it knows nothing of it. What does it again names it too."""
    import assay

    monkeypatch.chdir(tmp_path)
    file, point = write("tuned.py", TUNED), "n=64,dtype=fp32"
    mine, torch = assay.bench(file, workload=point, parameters={"factor": 1}, rounds=5, budget=0.05)
    assert (mine.status, torch.status) == ("pass", "pass"), (mine.reason, torch.reason)
    assert mine.evidence["parameters"] == {"factor": 1} and "parameters" not in torch.evidence
    assert mine.replay.startswith("assay bench tuned.py --param factor=1 ") and "--param" not in torch.replay
    (wrong,) = assay.check(file, workload=point, parameters={"factor": 2})
    assert wrong.status == "fail" and wrong.evidence["parameters"] == {"factor": 2}
    assert wrong.replay.startswith("assay check tuned.py --param factor=2 ")


def test_a_kernel_is_found_by_what_it_is_called():
    import shlex

    from assay.catalog import library
    from assay.catalog.called import called
    from assay.catalog.select import select

    for kernel in library.kernels():
        named = shlex.split(called(kernel, library.ops()[kernel.address.op]))
        assert [found for found, _ in select(named)] == [kernel]


def test_in_a_test_it_is_one_line_with_the_same_evidence(tmp_path):
    import importlib.util
    import textwrap

    import assay

    file = tmp_path / "wrong.py"
    file.write_text(textwrap.dedent(GOOD.replace("gelu(x)", "relu(x)")))
    spec = importlib.util.spec_from_file_location("wrong", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(assay.check.KernelFailed, match=r"gelu/torch:mine \[n=\d+,dtype=fp32") as caught:
        assay.verify(module.mine, dtypes="fp32", workloads=5)
    reason, shown, error, *_, replay = str(caught.value).splitlines()
    assert ", must be " in reason and reason.endswith("× its tolerance)") and replay.startswith("  replay: assay check")
    assert shown.startswith("  input   x = [") and error.startswith("  error   ")


def test_a_test_in_which_nothing_was_verified_fails(tmp_path):
    import textwrap

    import assay

    file = tmp_path / "narrow.py"
    file.write_text(textwrap.dedent(GOOD).replace('@kernel("gelu")', '@kernel("gelu", dtypes=["fp32"])'))
    with pytest.raises(assay.check.KernelFailed, match="it is written for fp32"):
        assay.verify(file, dtypes="bf16")
    records = assay.verify(file, dtypes=("fp32", "bf16"), workloads=2)
    assert {record.dtype: record.status for record in records} == {"fp32": "pass", "bf16": "skipped"}
    assert {record.dtype: record.evidence.get("written_for") for record in records} == {"fp32": None, "bf16": ["fp32"]}


def test_a_kernel_that_only_returns_says_so_and_is_judged(tmp_path):
    import textwrap

    import assay

    file = tmp_path / "returning.py"
    file.write_text(
        textwrap.dedent(GOOD)
        .replace('@kernel("gelu")', '@kernel("gelu", returns=True)')
        .replace("def mine(x, *, out)", "def mine(x)")
        .replace("out.copy_(torch.nn.functional.gelu(x))", "return torch.nn.functional.gelu(x)")
    )
    (record,) = assay.check(file, dtypes="fp32", workloads=4)
    assert record.status == "pass"


def test_a_file_changed_within_the_second_is_loaded_as_it_stands_and_nothing_is_left_beside_it(tmp_path, monkeypatch):
    """Of the same size and time: what Python's cache of compiled modules cannot tell apart."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "mine.py"
    for value in ("1", "2"):
        file.write_text(f"VALUE = {value}\n")
        os.utime(file, (1e9, 1e9))
        assert str(load.module(file).VALUE) == value
        del sys.modules["assay_user_mine"]
    assert [p.name for p in tmp_path.iterdir()] == ["mine.py"]


@pytest.mark.slow
def test_a_kernel_that_interprets_but_does_not_compile_is_wrong(write):
    file = write(
        "breaks.py",
        """
        import triton, triton.language as tl
        from assay import kernel

        @triton.jit
        def _silu(x, y, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            v = tl.load(x + i, mask=i < n).to(tl.float32)
            for k in range(2):
                if k == 1:
                    break
            tl.store(y + i, (v / (1 + tl.exp(-v))).to(y.dtype.element_ty), mask=i < n)

        @kernel("silu")
        def breaks(x, *, out):
            _silu[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), 1024)
        """,
    )
    (record,) = check(file, dtypes="bf16", workloads=4)
    assert record.status == "fail" and record.evidence["detector"] == (
        "build" if not host.runs_on_gpu() else "exception"
    )
    assert "Break" in record.reason and record.replay.endswith("--dtype bf16")
