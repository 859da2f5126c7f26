"""What the small changes to kernels are: each operator does what it names, and only where the kernel reaches."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.backends import Level, backend
from assay.catalog.select import select
from assay.selftest.mutants import Mutant, mutants
from assay.selftest.mutants.cuda import changes as cuda_changes
from assay.selftest.mutants.operators import OPERATORS, changes
from assay.selftest.mutants.source import Region, Source
from assay.selftest.mutants.tokens import CudaSource

ROOT = Path(__file__).parents[2]


def texts(folder: Path, body: str, operator: str, language: str = "triton", device: bool = True) -> list[str]:
    """The bodies that an operator makes of a function's body."""
    file = folder / "source.py"
    file.write_text(f"import x\n\n\ndef f(a, b, n, stride, cols):\n    {body}\n")
    source = Source(file)
    region = Region(source.tree.body[-1], device)
    found = [c for c in changes(source, region, language) if c.operator == operator]
    return [source.changed(c).decode().split("stride, cols):\n", 1)[1].strip() for c in found]


@pytest.mark.parametrize(
    "operator, language, body, expected",
    [
        ("boundary", "triton", "m = a < n", ["m = a <= n"]),
        ("boundary", "njit", "m = 0 <= a != n", ["m = 0 < a != n", "m = 0 <= a == n"]),
        ("constant", "njit", "m = a[0] + 7", ["m = a[0] + 8", "m = a[0] + 6", "m = a[1] + 7", "m = a[(-1)] + 7"]),
        ("constant", "triton", "f(num_warps=4, i=tl.arange(0, a))", []),
        ("float", "njit", "m = a * 2.0", ["m = a * 2.02", "m = a * 2.001953125"]),
        ("float", "njit", "m = 0.0", ["m = 1.0"]),
        ("arithmetic", "njit", "m = a + b", ["m = a - b"]),
        ("arithmetic", "triton", "m = (a) * (  # a * b\n        b)", ["m = (a) / (  # a * b\n        b)"]),
        ("arithmetic", "triton", "m = tl.program_id(0) * b", ["m = tl.program_id(0) // b"]),
        ("arithmetic", "njit", "a += b", ["a -= b"]),
        ("arithmetic", "njit", "a //= b", []),
        ("sign", "njit", "m = -a", ["m = (a)"]),
        ("mask", "triton", "m = tl.load(a + b, mask=b < n, other=0)", ["m = tl.load(a + b)"]),
        ("mask", "triton", "m = (a < n) & (b < n)", ["m = (a < n)", "m = (b < n)"]),
        ("guard", "numba", "if a < n:\n        b = 1", ["if True:\n        b = 1"]),
        ("guard", "numba", "if a is not None:\n        b = 1", []),
        ("guard", "njit", "m = a if b > n else n", ["m = (a)", "m = (n)"]),
        ("guard", "numba", "m = a < n and b < n", ["m = (b < n)", "m = (a < n)"]),
        ("other", "triton", "m = tl.load(a, mask=b, other=0.0)", ["m = tl.load(a, mask=b, other=1.0)"]),
        ("other", "triton", 'm = tl.load(a, mask=b, other=-float("inf"))', ["m = tl.load(a, mask=b, other=0.0)"]),
        ("barrier", "numba", "cuda.syncthreads()", ["pass"]),
        (
            "accumulator",
            "triton",
            "for i in n:\n        a += b * 2",
            [f"for i in n:\n        a = (a + (b * 2)).to(tl.{t}).to(tl.float32)" for t in ("float16", "bfloat16")],
        ),
        ("accumulator", "numba", "a += b", []),
        ("narrow", "triton", "m = a.to(tl.float32)", ["m = a.to(tl.bfloat16).to(tl.float32)"]),
        ("narrow", "numba", "m = widen(a)", ["m = np.float32(np.float16(widen(a)))"]),
        ("term", "triton", "m = a * n + b", ["m = (b)", "m = ((a * n))"]),
        ("term", "triton", "m = tl.load(a + b * n + c)", ["m = tl.load((a + c))", "m = tl.load((a + (b * n)))"]),
        ("swap", "njit", "m = a - b", ["m = ((b) - (a))"]),
        ("swap", "triton", "m = tl.where(n, a, b)", ["m = tl.where(n, b, a)"]),
        ("extreme", "triton", "m = tl.maximum(a, n)", ["m = tl.minimum(a, n)"]),
        ("extreme", "njit", "m = min(a, n)", ["m = max(a, n)"]),
        ("epsilon", "njit", "m = math.sqrt(a / b + eps)", ["m = (math.sqrt(a / b) + eps)"]),
        ("epsilon", "triton", "m = tl.rsqrt(a + eps)", ["m = (1 / (1 / tl.rsqrt(a) + eps))"]),
        ("cast", "triton", "m = a.to(tl.float32)", ["m = a"]),
        ("cast", "triton", "m = a.to(y.dtype.element_ty)", []),
        ("cast", "numba", "m = rounded(a, b)", ["m = (b)"]),
        ("axis", "njit", "m = a.shape[1]", ["m = a.shape[0]"]),
        ("axis", "triton", "m = tl.sum(a, 1)", ["m = tl.sum(a, 0)"]),
        ("axis", "triton", "m = a[:, None] * stride", ["m = a[None, :] * stride", "m = a[:, None] * cols"]),
        ("axis", "njit", "a, b = n.shape", ["b, a = n.shape"]),
    ],
)
def test_an_operator_makes_the_changes_it_names(tmp_path, operator, language, body, expected):
    assert sorted(texts(tmp_path, body, operator, language)) == sorted(expected)


def test_every_operator_is_tried_and_explained():
    (mark,) = test_an_operator_makes_the_changes_it_names.pytestmark
    page = (ROOT / "docs" / "selftest.md").read_text()
    assert {case[0] for case in mark.args[1]} == set(OPERATORS)
    assert all(f"`{name}`" in page for name in OPERATORS)


def test_a_launch_may_choose_its_sizes(tmp_path):
    """Nine elements for each thread instead of eight is no mistake."""
    made = texts(tmp_path, "m = min(a // 8, b - 1)", "constant", device=False)
    assert made == ["m = min(a // 8, b - 2)", "m = min(a // 8, b - 0)"]


NAMES = st.sampled_from(["a", "b", "n", "stride", "cols"])
LEAVES = st.one_of(NAMES, st.integers(0, 99).map(str), st.floats(0.1, 9, allow_nan=False).map(repr))
SYMBOLS = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", ">="])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, SYMBOLS, inner).map("({0[0]}) {0[1]} {0[2]}".format),
        inner.map("tl.exp({})".format),
        inner.map("-({})".format),
        st.tuples(inner, inner).map("tl.load({0[0]} + {0[1]}, mask={0[0]} < n, other=0)".format),
        st.tuples(inner, inner).map("({0[0]} if {0[1]} < n else é)".format),
    ),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(expression=EXPRESSIONS, language=st.sampled_from(["triton", "numba", "njit"]))
def test_every_change_of_any_expression_is_another_program_of_as_many_lines(tmp_path_factory, expression, language):
    file = tmp_path_factory.getbasetemp() / "drawn.py"
    file.write_text(
        f'import x\n\n\ndef f(a, b, n, stride, cols, é):\n    "é ü"; y = {expression}  # a < b\n    return y\n'
    )
    source = Source(file)
    before = ast.dump(source.tree)
    for change in changes(source, Region(source.tree.body[-1], True), language):
        after = source.changed(change)
        assert after.count(b"\n") == source.data.count(b"\n") and after.endswith(b"  # a < b\n    return y\n")
        tree = ast.dump(ast.parse(after))
        assert tree != before or change.operator in ("swap", "axis"), change


@pytest.mark.parametrize("name", ["gelu/triton", "sum/triton", "transpose/numba:tiled", "softmax/njit", "axpy/numba"])
def test_declarations_stay_as_they_are(name):
    """Docstrings, decorators and defaults are no part of what a kernel computes."""

    def declared(text: bytes) -> list[str]:
        return [
            ast.dump(part)
            for n in ast.walk(ast.parse(text))
            if isinstance(n, ast.FunctionDef)
            for part in (*n.decorator_list, n.args, ast.Constant(ast.get_docstring(n)))
        ]

    (choice,) = select([name])
    found = mutants(*choice)
    original = declared(choice[0].file.read_bytes())
    assert found and all(declared(m.data) == original for m in found)
    assert found == mutants(*choice)
    assert len({m.name for m in found}) == len({m.data for m in found}) == len(found)


def test_a_source_that_python_folds_to_the_same_is_no_mutant(write):
    """`2 * 2` and `2 + 2` are one constant; `1` and `1.0` are two."""
    file = write(
        "mine.py",
        """\
        from numba import njit
        from assay import kernel

        @kernel("silu")
        def silu(x, *, out):
            out.copy_(x * (2 - 0) * 1)
        """,
    )
    found = mutants(*select([file])[0])
    assert "+" not in {m.after for m in found if m.before == "-"} and {"swap", "constant"} <= {
        m.operator for m in found
    }


def lines_changed(name: str) -> set[int]:
    (choice,) = select([name])
    return {m.line for m in mutants(*choice)}


def test_only_what_a_kernel_reaches_is_changed():
    text = Path(select(["gelu/triton"])[0][0].file).read_text().splitlines()
    tanh = next(i for i, line in enumerate(text, 1) if "0.044715" in line)
    erf = next(i for i, line in enumerate(text, 1) if "tl.erf" in line)
    assert erf in lines_changed("gelu/triton") and tanh not in lines_changed("gelu/triton")
    assert tanh in lines_changed("gelu_tanh/triton") and erf not in lines_changed("gelu_tanh/triton")
    assert not lines_changed("gelu/njit") & lines_changed("gelu_tanh/njit")


CUDA = """\
// a < b in a comment; x * y
#define HALF 0.5f
struct Twice {
  static __device__ float of(float x) { return x * 2.0f; }
  static __device__ float unused(float x) { return x * 7.0f; }
};
template <typename T, int N> __global__ void k(const T* x, float* y, long long n, float eps) {
  __shared__ float s[4];  /* n < 3 */
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  float sum = 0.0f;
  asm("add < 4 + 4");
  if (i < n && n > 2) sum += widen(x[i]);
  __syncthreads();
  y[i] = sqrtf(sum - n + eps) * Twice::of(fmaxf(sum, s[1]));
}
__global__ void other(float* y) { y[1] = 3.0f; }
"""


def test_a_function_is_known_by_its_name_and_not_by_the_type_of_a_parameter(tmp_path):
    file = tmp_path / "k.cuh"
    file.write_text(
        "template <int N> __device__ float2 sums(float a, float2 (&all)[N]) { return all[0]; }\n"
        "__global__ void __launch_bounds__(256, 1024 / 256) k(float* y, float (&v)[2]) { y[0] = v[1]; }\n"
    )
    assert [d.name for d in CudaSource(file).definitions] == ["sums", "k"]
    assert CudaSource(file).reached({"float2", "float"}) == []


def test_cuda_is_changed_in_its_code_and_only_where_the_kernel_reaches(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(CUDA)
    source = CudaSource(file)
    found = list(cuda_changes(source, {"k"}))
    changed = {(c.operator, CUDA.encode()[c.start : c.end].decode(), c.text) for c in found}
    for expected in [
        ("boundary", "<", "<="),
        ("guard", "i < n && n > 2", "i < n"),
        ("guard", "i < n && n > 2", "true"),
        ("barrier", "__syncthreads()", ""),
        ("cast", "(long long)", ""),
        ("extreme", "fmaxf", "fminf"),
        ("float", "2.0f", "2.02f"),
        ("axis", "x", "y"),
        ("epsilon", "sqrtf(sum - n + eps)", "(sqrtf(sum - n) + eps)"),
        ("swap", "sum - n", "n - sum"),
        ("narrow", "widen(x[i])", "__half2float(__float2half(widen(x[i])))"),
        ("accumulator", "sum += widen(x[i])", "sum = __half2float(__float2half(sum + (widen(x[i]))))"),
        ("term", "blockIdx.x * (long long)blockDim.x + threadIdx.x", "threadIdx.x"),
    ]:
        assert expected in changed, expected
    lines = {CUDA.encode()[: c.start].count(b"\n") + 1 for c in found}
    assert 4 in lines and not lines & {1, 2, 5, 11, 16}
    kept = re.findall(r"//[^\n]*|/\*.*?\*/|\"[^\"]*\"|template <[^>]*>", CUDA)
    for c in found:
        assert re.findall(r"//[^\n]*|/\*.*?\*/|\"[^\"]*\"|template <[^>]*>", source.changed(c).decode()) == kept, c


@pytest.mark.slow
@pytest.mark.skipif(backend("cuda").availability().level is Level.MISSING, reason="no NVRTC")
def test_most_mutants_in_cuda_are_programs(tmp_path):
    from assay.backends import nvrtc
    from assay.errors import BuildError
    from assay.target import DEFAULT

    (choice,) = select(["silu/cuda"])
    built, texts_hashed = 0, set()
    found = [m for m in mutants(*choice) if m.file.suffix == ".cu"]
    for m in found:
        try:
            artifact = nvrtc.build(m.data.decode(), "kernel.cu", "silu<float, 4>", DEFAULT, ())
        except BuildError:
            continue
        built += 1
        texts_hashed.add(artifact.text_hash)
    assert len(found) >= 20 and built >= 0.8 * len(found) and len(texts_hashed) >= 0.7 * built


@pytest.mark.skipif(backend("cuda").availability().level is Level.MISSING, reason="no NVRTC")
def test_a_header_without_a_barrier_is_another_kernel(tmp_path):
    """Most barriers are in headers, which several kernels share."""
    from assay.backends.cuda import Source as Cuda
    from assay.target import DEFAULT

    (choice,) = select(["sum/cuda"])
    found = [m for m in mutants(*choice) if m.operator == "barrier"]
    assert [m.file.name for m in found] == ["reduce.cuh"]
    assert re.fullmatch(r"sum/cuda@reduce\.cuh:\d+:\d+:barrier:0", found[0].name)
    files = [choice[0].file, *(m.write(tmp_path / str(m.line))[0].file for m in found)]
    built = [Cuda(f.parent / "kernel.cu").build("sums<float, float, 256, 1>", DEFAULT) for f in files]
    assert len({one.text_hash for one in built}) == 2
    assert [one.ptx.count(b"bar.sync") for one in built] == [1, 0]


def test_a_mutant_says_where_it_is():
    found = mutants(*select(["gelu/cuda"])[0])
    inside: list[Mutant] = [m for m in found if m.file.suffix == ".cu"]
    assert inside and all(re.fullmatch(r"gelu/cuda@kernel\.cu:\d+:\d+:\w+:\d+", m.name) for m in inside)
    for m in inside[:5]:
        line = m.file.read_text().splitlines()[m.line - 1]
        assert line[m.column - 1 :].startswith(m.before.splitlines()[0])
