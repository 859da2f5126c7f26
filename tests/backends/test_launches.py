"""A launch whose arguments do not fit the kernel is refused, with the parameter and both lines; one that may be right
is not."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import assay
from assay import host
from assay.backends import arguments, cuda, declaration
from assay.backends.cuda import BACKEND, Source
from assay.backends.declaration import find
from assay.backends.launcher import Launcher, Options
from assay.errors import LaunchError, UsageError
from assay.target import Target

needs_nvrtc = pytest.mark.skipif(not host.has("cuda.bindings"), reason="no NVRTC here: pip install cuda-bindings")
INCLUDES = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\nstruct Pair { float* p; long long n; };\n"


def tensor(dtype):
    return torch.empty(4, dtype=dtype)


class Struct(ctypes.Structure):
    _fields_ = (("p", ctypes.c_void_p), ("n", ctypes.c_longlong))


FITTING = [
    ("const float*", tensor(torch.float32)),
    ("__nv_bfloat16*", tensor(torch.bfloat16)),
    ("const __half*", tensor(torch.float16)),
    ("const __half2*", tensor(torch.float16)),
    ("const float*", None),
    ("const double*", tensor(torch.float64)),
    ("bool*", tensor(torch.bool)),
    ("const int*", tensor(torch.int32)),
    ("const long*", tensor(torch.int64)),
    ("long long", 7),
    ("unsigned long", 7),
    ("float*", 1 << 40),  # an address
    ("float", 0.5),
    ("bool", True),
    ("int", np.int32(7)),
    ("unsigned", np.uint32(7)),
    ("short", ctypes.c_int16(7)),
    ("double", ctypes.c_double(0.5)),
    ("double", np.float64(0.5)),
    ("Pair", Struct()),
    # memory that is read as something else on purpose
    ("const void*", tensor(torch.bfloat16)),
    ("const uint4*", tensor(torch.bfloat16)),
    ("const float4*", tensor(torch.bfloat16)),
    ("const unsigned char*", tensor(torch.float32)),
    ("unsigned*", tensor(torch.float16)),
    ("int*", tensor(torch.float32)),
    ("const int*", tensor(torch.int8)),
    ("float*", tensor(torch.uint8)),
    ("const __nv_bfloat16*", tensor(torch.int16)),
    ("const float* const*", tensor(torch.int64)),
    ("unsigned long long", tensor(torch.float32)),
]
WRONG = [
    ("int", 7, "8 bytes for a parameter of 4 bytes", "declare it as `long long`, or pass numpy.int32"),
    ("long long", np.int32(7), "4 bytes for a parameter of 8 bytes", ""),
    ("double", 0.5, "4 bytes for a parameter of 8 bytes", "declare it as `float`, or pass numpy.float64"),
    ("float", np.float64(0.5), "8 bytes for a parameter of 4 bytes", "declare it as `double`, or pass numpy.float32"),
    ("int", 0.5, "a floating-point number for an integer", ""),
    ("double", 7, "an integer for a floating-point number", ""),
    ("int", True, "1 byte for a parameter of 4 bytes", ""),
    ("float", None, "8 bytes for a parameter of 4 bytes", ""),
    ("float", tensor(torch.float32), "8 bytes for a parameter of 4 bytes", ""),
    ("long long", tensor(torch.float32), "a pointer for an integer", "in the order"),
    ("Pair", tensor(torch.float32), "8 bytes for a parameter of 16 bytes", ""),
    ("const float*", tensor(torch.bfloat16), "bf16 elements would be read as `float`", 'dtypes=["fp32"]'),
    ("const __half*", tensor(torch.bfloat16), "bf16 elements would be read as `__half`", ""),
    ("__half2*", tensor(torch.float32), "fp32 elements would be read as `__half`", ""),
    ("const double*", tensor(torch.float32), "fp32 elements would be read as `double`", ""),
    ("const float*", tensor(torch.int64), "int64 elements would be read as `float`", ""),
    ("const int*", tensor(torch.int64), "int64 elements would be read as `int`", ""),
    ("const long long*", tensor(torch.int32), "int32 elements would be read as `long long`", ""),
    ("bool*", tensor(torch.int32), "int32 elements would be read as `bool`", ""),
]


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    """Compile a kernel with these parameters and launch it, on no GPU."""
    file = tmp_path_factory.mktemp("launch") / "k.cu"

    def start(declared, args, linkage=""):
        listed = ", ".join(f"{t} p{i}" for i, t in enumerate(declared))
        file.write_text(f"{INCLUDES}{linkage}__global__ void k({listed}) {{}}\n{'}' * linkage.count('{')}")
        with BACKEND.tracing(Target("sm_90")) as launches:
            Source(file)["k"](1, 1, *args)
        assert len(launches) == 1

    return start


@needs_nvrtc
@settings(max_examples=25)
@given(pairs=st.lists(st.sampled_from(FITTING), min_size=1, max_size=8), data=st.data())
def test_a_launch_that_may_be_right_is_accepted_and_one_of_another_length_is_not(launch, pairs, data):
    declared, args = zip(*pairs, strict=True)
    launch(declared, args)
    at = data.draw(st.integers(0, len(args) - 1))
    with pytest.raises(LaunchError, match=f"{len(args) - 1} arguments? for {len(args)} parameters?: .*gets nothing"):
        launch(declared, (*args[:at], *args[at + 1 :]))
    with pytest.raises(LaunchError, match=f"{len(args) + 1} arguments for {len(args)} parameters?: nothing in `k`"):
        launch(declared, (*args[:at], 1, *args[at:]))


@needs_nvrtc
@pytest.mark.parametrize(("declared", "value"), FITTING)
def test_what_only_the_sizes_tell_is_accepted_too(launch, declared, value):
    launch([declared], [value], 'extern "C" ')


@needs_nvrtc
@pytest.mark.parametrize(("declared", "value", "problem", "fix"), WRONG)
def test_an_argument_of_another_type_is_refused_by_name(launch, declared, value, problem, fix):
    with pytest.raises(LaunchError) as caught:
        launch(["long long", declared], [1, value])
    assert caught.value.what.startswith(f"{problem}: `{declared} p1` (k.cu:4), parameter 2 of `k`, gets ")
    assert fix in caught.value.fix


@needs_nvrtc
@pytest.mark.parametrize(("declared", "value", "problem", "fix"), WRONG)
@pytest.mark.parametrize("linkage", ['extern "C" ', 'extern "C" {\n'])
def test_a_c_function_has_the_types_of_its_source(launch, declared, value, problem, fix, linkage):
    with pytest.raises(LaunchError) as caught:
        launch(["long long", declared], [1, value], linkage)
    assert caught.value.what.startswith(f"{problem}: `{declared} p1`") and fix in caught.value.fix


@pytest.mark.parametrize(
    ("written", "types"),
    [
        ("const float* __restrict__ x, half *y, long long n", ("float const*", "__half*", "long long")),
        ("float const *x, unsigned n, const int n2", ("float const*", "unsigned int", "int")),
        ("unsigned long long int n, nv_bfloat16*", ("", "__nv_bfloat16*")),
        ("const float* const* x, float x[4], T* y, Pair p, float& r", ("", "", "", "", "")),
        ("float* const x, int64_t* y, short int* z", ("float*", "long long*", "short*")),
        ("own* x, half2* y, const /* half */ float* z", ("", "", "float const*")),
        ("\n#ifdef A\n float* x\n#else\n half* x\n#endif\n, int n", ("", "int")),
    ],
)
def test_the_types_that_a_source_declares_with_certainty(written, types):
    source = f'#define half2 float\ntypedef float own;\nextern "C" __global__ void k({written}) {{}}\n'
    declared = find(source, "k", len(types))
    assert declaration.types(declared, source, {*arguments._VALUES, *arguments._ELEMENTS, "own"}) == types


@needs_nvrtc
def test_the_sizes_alone_refuse_an_int_for_a_c_function(launch):
    with pytest.raises(LaunchError, match="8 bytes for a parameter of 4 bytes: `int p0`"):
        launch(["int"], [7], 'extern "C" ')


@pytest.mark.parametrize("value", [np.float64(0.1), np.float32(0.1), np.int32(7), ctypes.c_double(0.1)])
def test_a_number_with_a_type_is_passed_unchanged(value, monkeypatch):
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", None, raising=False)
    plain = Launcher(None)._plain
    assert plain(value) is value
    assert [type(plain(number)) for number in (0.1, 7, True)] == [np.float32, np.int64, np.bool_]


@needs_nvrtc
def test_a_grid_that_is_not_whole_clusters_is_refused(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text("__global__ void k(float* x) {}\n")
    with BACKEND.tracing(Target("sm_90")) as launches:
        Source(file)["k"](32, 128, tensor(torch.float32), cluster=16)
        with pytest.raises(LaunchError, match="40 blocks along x are not whole clusters of 16 in the launch of `k`"):
            Source(file)["k"](40, 128, tensor(torch.float32), cluster=16)
    assert [(launch.grid, launch.cluster) for launch in launches] == [((32,), 16)]


def test_clusters_are_refused_before_a_build_for_a_target_without_them(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text("this does not compile\n")
    with BACKEND.tracing(Target("sm_86")), pytest.raises(LaunchError) as caught:
        Source(file)["k"](32, 128, tensor(torch.float32), cluster=4)
    assert caught.value.what == "clusters need sm_90: `k` is launched with cluster=4 for sm_86"


TWO_STEPS = """#include <cuda_fp16.h>
__device__ float total;
__device__ const float weight = 0.5f;
template <int N> __global__ void add(const float* x) { for (int i = 0; i < N; i++) total += weight * x[i]; }
__global__ void scale(float* x) { x[0] *= weight; }
__global__ void divide(float* x) { x[0] /= total; }
"""


@needs_nvrtc
def test_kernels_that_share_a_variable_are_refused_for_each_has_its_own(tmp_path):
    file = tmp_path / "steps.cu"
    file.write_text(TWO_STEPS)
    x = torch.zeros(4)
    with BACKEND.tracing(Target("sm_90")):
        source = Source(file)
        for name in ("add<2>", "add<4>", "scale"):
            source[name](1, 1, x)
        with pytest.raises(UsageError, match=r"steps.cu: add<2> and divide share the __device__ variable total") as no:
            source["divide"](1, 1, x)
    assert "Scratch memory" in no.value.fix


@needs_nvrtc
def test_on_a_gpu_a_wrong_launch_is_refused_before_it_is_started(tmp_path, monkeypatch):
    """With a stand-in for the device; tests/test_gpu.py has the real one."""
    core = pytest.importorskip("cuda.core")
    file = tmp_path / "k.cu"
    file.write_text("__global__ void k(const float* x, long long n) {}\n")
    started = []

    def load(self, name):
        artifact = self.build(name, Target("sm_90"))
        return cuda.Loaded("kernel", artifact, cuda.parameters(artifact.symbol, artifact.ptx))

    monkeypatch.setattr(Source, "load", load)
    monkeypatch.setattr(core, "Device", lambda: SimpleNamespace(set_current=lambda: None))
    monkeypatch.setattr(cuda, "Launcher", lambda kernel: lambda *launch: started.append(launch))
    function, x = Source(file)["k"], tensor(torch.float32)
    with pytest.raises(LaunchError, match="1 argument for 2 parameters"):
        function(1, 1, x)
    assert not started
    function(1, 1, x, 4)
    assert started == [((1,), (1,), (x, 4), Options())]
    with BACKEND.launched(), pytest.raises(LaunchError, match="int64 elements would be read as `float`"):
        function(1, 1, tensor(torch.int64), 4)


@pytest.mark.parametrize(
    ("source", "line", "parameters"),
    [
        ("__global__ void k(int a,\n  float b) {}", 1, ("int a", "float b")),
        (
            "// __global__ void k(int x, int y)\n__global__ void k(int a, Pair<int, 2> b) {}",
            2,
            ("int a", "Pair<int, 2> b"),
        ),
        ("__global__ void\n__launch_bounds__(W ? 1 : 2)\nk(int /* , */ a, float b)\n{}", 3, ("int a", "float b")),
        ("__global__ void k(int a); __global__ void k(int a, int b) {}", 1, ("int a", "int b")),
        ("__global__ void k(int a, int b) {} __global__ void k(int c, int d) {}", 0, ()),
        ("#define K __global__ void k\nK(int a, int b) {}", 0, ()),
        ("__global__ void kk(int a, int b) {}", 0, ()),
        ("__global__ void k(int a, (int b", 0, ()),
    ],
)
def test_a_declaration_is_found_in_the_source_or_not_at_all(source, line, parameters):
    found = find(source, "ns::k<float, 4>", 2)
    assert (found and (found.line, found.parameters)) == ((line, parameters) if line else None)


CU = """\
// assay: f{instance}<<<cdiv(n, 256), 256>>>({passed})
#include <cuda_bf16.h>
{template}__global__ void f(const {T}* x, {T}* y, {n} n) {{}}
"""
COMMENTS = {
    "few": ({"passed": "x, out"}, "2 arguments for 3 parameters: `long long n` (f.cu:3), parameter 3"),
    "many": ({"passed": "x, out, n, n"}, "4 arguments for 3 parameters"),
    "narrow": ({"n": "int"}, "8 bytes for a parameter of 4 bytes: `int n` (f.cu:3), parameter 3"),
    "swapped": ({"passed": "x, n, out"}, "a pointer for an integer: `long long n` (f.cu:3), parameter 3"),
    "only32": (
        {"T": "float", "template": "", "instance": ""},
        "bf16 elements would be read as `float`: `const float* x` (f.cu:3), parameter 1",
    ),
}


@needs_nvrtc
@pytest.mark.skipif(host.runs_on_gpu(), reason="there is a GPU: tests/test_gpu.py")
@pytest.mark.parametrize("name", COMMENTS)
def test_a_wrong_launch_comment_fails_without_a_gpu(name, write):
    change, words = COMMENTS[name]
    right = {"passed": "x, out, n", "T": "T", "n": "long long", "template": "template <typename T> ", "instance": "<T>"}
    file = write("f.cu", CU.format(**right | change))
    (record,) = assay.check(file, op="gelu", dtypes="bf16", workloads=2)
    assert (record.status, record.evidence["detector"]) == ("fail", "launch")
    assert words in record.reason and f"in the launch at {file}:1" in record.reason


PYTHON = {
    "cuda": """
        from assay import kernel
        from assay.backends.cuda import Source, ctype

        source = Source("k.cu")

        @kernel("gelu")
        def mine(x, *, out):
            source[f"f<{ctype(x)}>"](1, 128, x, out)
    """,
    "cupy": """
        import cupy
        from assay import kernel
        from assay.backends.cupy import array

        code = 'extern "C" __global__ void f(const float* x, float* y, long long n) {}'
        raw = cupy.RawModule(code=code).get_function("f")


        @kernel("gelu")
        def mine(x, *, out):
            raw((1,), (128,), (array(x), array(out)))
    """,
    "cupy elementwise": """
        import cupy
        from assay import kernel
        from assay.backends.cupy import array



        add = cupy.ElementwiseKernel("T x, T z", "T y", "y = x + z", "add")

        @kernel("gelu")
        def mine(x, *, out):
            add(array(x), array(out))
    """,
    "triton": """
        import triton
        from assay import kernel

        @triton.jit
        def _f(x, y, n):
            pass

        @kernel("gelu")
        def mine(x, *, out):

            _f[(1,)](x, out)
    """,
    "numba": """
        from numba import cuda
        from assay import kernel
        from assay.backends.numba import launch

        @cuda.jit
        def _f(x, y, n):
            pass

        @kernel("gelu")
        def mine(x, *, out):
            launch(_f, 1, 1, x, out)
    """,
}


@pytest.mark.skipif(host.runs_on_gpu(), reason="there is a GPU: tests/test_gpu.py")
@pytest.mark.parametrize("language", PYTHON)
def test_a_launch_without_an_argument_fails_at_its_line(language, write):
    pytest.importorskip({"cuda": "cuda.bindings"}.get(language, language.split()[0]))
    write("k.cu", "template <typename T> __global__ void f(const T* x, T* y, long long n) {}\n")
    text = PYTHON[language]
    line = next(i for i, each in enumerate(text.splitlines(), 1) if "out)" in each and "def" not in each)
    file = write("mine.py", text)
    (record,) = assay.check(file, dtypes="fp32", workloads=2)
    assert record.status == "fail"
    assert f"{file.name}:{line}" in record.reason
    expected = {
        "triton": "missing 1 required positional argument: 'n'",
        "numba": "missing 1 required positional argument: 'n'",
        "cupy elementwise": "`add` takes 3 arguments (x, z, y) and gets 2",
    }
    words = expected.get(language, "2 arguments for 3 parameters: `long long n`")
    assert words in record.reason


@pytest.mark.slow
@pytest.mark.skipif(host.runs_on_gpu(), reason="there is a GPU: the simulator is not used")
@pytest.mark.parametrize(
    ("signature", "dtype", "words"),
    [
        ('"void(float32[::1], float32[:], int32)"', "fp32", ""),
        ('["void(float32[:], float32[:], int32)", "void(float16[:], float16[:], int32)"]', "fp16", ""),
        (
            '"void(float32[::1], float32[:], int32)"',
            "fp16",
            "`array(float32, 1d, C)`, gets a contiguous 1d array of float16",
        ),
        (
            '"void(float32[:,:], float32[:], int32)"',
            "fp32",
            "`array(float32, 2d, A)`, gets a contiguous 1d array of float32",
        ),
        ('"void(float32[:], float32[:], float32[:])"', "fp32", "parameter 3, `array(float32, 1d, A)`, gets a int"),
        ('"void(float32[:], float32[:])"', "fp32", "3 arguments are passed for 2 parameters"),
    ],
)
def test_a_numba_kernel_is_launched_only_with_what_its_signature_declares(signature, dtype, words, write):
    pytest.importorskip("numba_cuda")
    file = write(
        "mine.py",
        f"""
        from numba import cuda
        from assay import kernel
        from assay.backends.numba import launch

        @cuda.jit({signature})
        def relu_(x, y, n):
            i = cuda.grid(1)
            if i < n:
                y[i] = x[i] if x[i] > 0 or x[i] != x[i] else x[i] * 0

        @kernel("relu")
        def mine(x, *, out):
            launch(relu_, (x.numel() + 31) // 32, 32, x, out, x.numel())
        """,
    )
    (record,) = assay.check(file, dtypes=dtype, workloads=1)
    if words:
        assert (record.status, record.evidence["detector"]) == ("fail", "launch")
        assert words in record.reason
    else:
        assert record.evidence.get("detector", "") != "launch", record.reason


@pytest.mark.parametrize(
    ("launch", "words", "workload"),
    [
        ("<<<(1, rows), 256>>>", "a grid of (1, 65537)", "rows=65537,cols=1"),
        ("<<<rows, 256, cols * 4>>>", "bytes of shared memory", "rows=1,cols=65537"),
    ],
)
def test_a_launch_that_only_a_long_axis_makes_too_large_fails_without_a_gpu(launch, words, workload, write):
    kernel = "template <typename T> __global__ void k(const T* x, T* y, long long cols) {}"
    file = write("mine.cu", f"// assay: op softmax\n// assay: k<T>{launch}(x, out, cols)\n{kernel}\n")
    (record,) = assay.check(file, dtypes="fp32")
    assert record.failed and words in record.reason and record.workload.startswith(workload), record.reason


def test_a_source_without_its_file_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(UsageError, match=r"there is no file .*missing\.cu") as refused:
        Source(tmp_path / "missing.cu").build("k", Target("sm_90"))
    assert "folder of the Python file" in refused.value.fix
