"""Each language's toolchain, for real: compilers build, interpreters round, fallbacks are failures."""

import os
import subprocess
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

import assay
from assay import host
from assay.backends import backend, cuda, includes, nvcc, nvrtc, vector_isa
from assay.catalog import library
from assay.catalog.reader import kernels_in, ops_in
from assay.isa import cubin
from assay.target import Target

SOURCE = (library.ROOT / "gelu" / "kernel.cu").read_text()
FILE = str(library.ROOT / "gelu" / "kernel.cu")
NAME = "gelu<__nv_bfloat16, 8, Erf>"
TARGETS = ["sm_80", "sm_90", "sm_90a", "sm_100"]


@pytest.mark.parametrize("target", TARGETS)
def test_nvrtc_builds_the_named_instance_with_no_driver(target):
    artifact = nvrtc.build(SOURCE, FILE, NAME, Target(target))
    assert artifact.symbol.startswith("_Z4geluI13__nv_bfloat16")
    assert f".target {target}".encode() in artifact.ptx
    assert artifact.registers and artifact.registers < 64


def test_nvcc_builds_the_same_instance_to_the_same_machine_code():
    ours, theirs = (tool.build(SOURCE, FILE, NAME, Target("sm_90")) for tool in (nvrtc, nvcc))
    assert theirs.symbol == ours.symbol
    assert theirs.text_hash == ours.text_hash
    assert theirs.compiler.startswith("nvcc 13.") and ours.compiler.startswith("nvrtc 13.")


def test_sections_and_registers_agree_with_nvidias_own_reader(tmp_path):
    artifact = nvrtc.build(SOURCE, FILE, NAME, Target("sm_90"))
    file = tmp_path / "x.cubin"
    file.write_bytes(artifact.cubin)
    said = subprocess.run(
        [host.tool("cuobjdump"), "-res-usage", file], capture_output=True, text=True, check=True
    ).stdout
    assert f"REG:{artifact.registers} " in said
    listing = subprocess.run([host.tool("cuobjdump"), "-elf", file], capture_output=True, text=True, check=True).stdout
    for section in cubin.sections(artifact.cubin):
        assert section.name in listing
    (function,) = cubin.functions(artifact.cubin)
    assert len(function.text) % 128 == 0 and function.symbol == artifact.symbol


@pytest.mark.parametrize("how", ['"near.cuh"', "<near.cuh>", '"far/on.cuh"', "NEAR"])
def test_a_kernel_is_built_anew_when_what_it_includes_has_changed(how, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "on.cuh").write_text('#include "../near.cuh"\n')
    source = tmp_path / "k.cu"
    source.write_text(f'#define NEAR "near.cuh"\n#include {how}\n__global__ void k(float* x) {{ *x = scaled(*x); }}\n')
    built = []
    for factor in (2, 3, 2):
        (tmp_path / "near.cuh").write_text(f"__device__ float scaled(float x) {{ return {factor} * x + 1; }}\n")
        built.append(cuda.Source(source).build("k", Target("sm_90")).text_hash)
    assert built[0] == built[2] != built[1]


@pytest.mark.parametrize("flags", [("-I", "{}"), ("--include-path", "{}"), ("-I{}",), ("--include-path={}",)])
def test_a_header_in_a_folder_that_a_flag_names_is_noticed_too(flags, tmp_path):
    (tmp_path / "far").mkdir()
    source = tmp_path / "k.cu"
    source.write_text('#include "near.cuh"\n__global__ void k(float* x) { *x = scaled(*x); }\n')
    digests = []
    for factor in (2, 3):
        (tmp_path / "far" / "near.cuh").write_text(f"__device__ float scaled(float x) {{ return {factor} * x; }}\n")
        named = [flag.format(tmp_path / "far") for flag in flags]
        digests.append(includes.digest(source.read_text(), source, named, None))
    assert digests == [None, None] if len(flags) == 2 else None not in digests and digests[0] != digests[1]
    assert includes.digest(source.read_text(), source, [], None) is None, "it is in a folder that is not known"


def test_the_text_hash_ignores_the_path_it_was_built_at():
    one, other = (nvrtc.build(SOURCE, f"/somewhere/{n}/kernel.cu", NAME, Target("sm_90")) for n in "ab")
    assert one.cubin != other.cubin
    assert one.text_hash == other.text_hash


@pytest.mark.slow
@pytest.mark.skipif(host.runs_on_gpu(), reason="only where Triton is interpreted")
def test_tritons_interpreter_rounds_to_nearest_even():
    """bf16 outputs equal PyTorch's bit for bit on a copy through float32."""
    (record,) = assay.check("normalize_clip/triton", dtypes="bf16", workloads=6)
    assert record.status == "pass"
    assert record.evidence["errors"]["out"]["kernel"]["max"] <= 0.51


@pytest.mark.slow
def test_a_graph_break_in_torch_compile_is_a_failure(tmp_path):
    file = tmp_path / "breaks.py"
    file.write_text(
        textwrap.dedent("""
        import torch
        from assay import kernel

        @torch.compile
        def compiled(x):
            torch._dynamo.graph_break()
            return torch.nn.functional.gelu(x)

        @kernel("gelu", backend="inductor")
        def mine(x, *, out):
            out.copy_(compiled(x))
    """)
    )
    (record,) = assay.check(file, dtypes="fp32", workloads=2)
    assert record.status == "fail" and "fell back to eager" in record.reason


def test_eager_under_the_name_of_inductor_is_a_failure(tmp_path):
    file = tmp_path / "eager.py"
    file.write_text(
        'import torch\nfrom assay import kernel\n@kernel("gelu", backend="inductor")\ndef mine(x, *, out):\n'
        "    out.copy_(torch.nn.functional.gelu(x))\n"
    )
    (record,) = assay.check(file, dtypes="fp32", workloads=2)
    assert record.status == "fail" and "no graph was compiled" in record.reason


def test_what_inductor_compiles_to_know_the_processor_is_kept_whole_or_not_at_all(tmp_path, monkeypatch):
    """Its tests of vector instructions, as a later process with an empty cache finds them."""
    from torch._inductor import cpu_vec_isa

    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "kept"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "usual"))
    found = []

    def ask():
        library = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) / "ab" / "cabc.so"
        found.append(library.exists() and library.read_text())
        library.parent.mkdir(exist_ok=True)
        library.write_text("half")
        if len(found) == 1:
            raise KeyboardInterrupt
        library.write_text("whole")

    monkeypatch.setattr(cpu_vec_isa, "valid_vec_isa_list", ask)
    with pytest.raises(KeyboardInterrupt):
        vector_isa.find()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "usual")
    vector_isa.find()
    vector_isa.find()
    assert found == [False, False, "whole"] and not (tmp_path / "usual").exists()
    assert [f.name for f in (tmp_path / "kept").rglob("*") if f.is_file()] == ["cabc.so"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cuda", "cupy"])
def test_without_a_gpu_cuda_and_cupy_build_and_never_pass(name):
    if host.runs_on_gpu():
        pytest.skip("runs here")
    for record in assay.check("gelu/" + name, dtypes="fp32", target="sm_90"):
        assert record.status == "compiled"
        for artifact in record.artifacts:
            assert artifact["ptx_bytes"] and artifact["cubin_bytes"] and artifact["target"] == "sm_90"


def test_cupy_quotes_its_own_error_for_a_dtype_it_has_not():
    assert "float128x" in backend("cupy").refusal("float128x")
    assert backend("cupy").refusal("fp32") == ""


def test_kernels_and_ops_are_read_without_running_the_file(tmp_path):
    file = tmp_path / "loud.py"
    file.write_text(
        textwrap.dedent("""
        import assay
        from assay import Axis, Tensor, kernel, op
        LIMIT = 7
        raise RuntimeError("this file was run")

        @op(axes={"n": Axis(max=LIMIT, typical=5)}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n")})
        def double(x):
            return 2 * x

        @kernel("double", backend="njit", tune={"B": [1, 2]}, scratch={"s": ("fp32", "n")})
        def mine(x, *, out, s, B=1): ...
    """)
    )
    op = ops_in(file)["double"]
    assert op.axes["n"].max == 7
    (kernel,) = kernels_in(file)
    assert kernel.name == "double/njit:mine"
    assert kernel.tune == {"B": [1, 2]} and kernel.scratch == {"s": ("fp32", "n")}
    assert kernel.parameters == ("x", "out", "s", "B")


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_kernels_in_a_binary_are_found_by_their_demangled_names(kind, tmp_path):
    from assay.backends.cuda import Binary
    from assay.errors import UsageError

    name = "gelu_backward<__nv_bfloat16, 8, Erf>"
    artifact = nvrtc.build(SOURCE, FILE, name, Target("sm_90"))
    file = tmp_path / f"gelu.{kind}"
    file.write_bytes(getattr(artifact, kind))
    binary = Binary(file)
    assert binary.symbols == {name: artifact.symbol}
    assert binary["gelu_backward<__nv_bfloat16,8,Erf>"].name
    with pytest.raises(UsageError, match="holds no kernel called relu") as caught:
        binary["relu"]
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z4geluI13__nv_bfloat16Li8E3ErfEvPKT_PS2_x", "gelu<__nv_bfloat16, 8, Erf>"),
        ("_Z4geluIfLi4EEvPKT_PS0_x", "gelu<float, 4>"),
        ("_ZN5outer5innerIdEEvPT_", "outer::inner<double>"),
        ("plain_c", "plain_c"),
    ],
)
def test_names_are_demangled_to_what_the_source_calls_them(symbol, name):
    from assay.isa.names import instance

    assert instance(symbol) == name


def test_a_missing_part_of_numbas_toolchain_says_nothing_about_a_kernel():
    from numba.cuda.cudadrv.error import NvvmSupportError

    from assay.backends.numba_tracing import _refusal

    kernel = SimpleNamespace(py_func=lambda x: x)
    assert "cannot compile here" in str(_refusal(kernel, NvvmSupportError("libNVVM cannot be found")))
    assert "refused" in str(_refusal(kernel, TypeError("no matching overload")))


def test_a_tensor_given_to_numba_as_it_is_gets_one_line_of_advice(write):
    """Numba's own message for it is a page of typing errors."""
    file = write(
        "given.py",
        """
        import numba
        from assay import kernel

        @numba.njit
        def loop(x, y):
            y[0] = x[0]

        @kernel("gelu", backend="njit")
        def mine(x, *, out):
            loop(x, out)
        """,
    )
    (record,) = assay.check(file, workload="n=8,dtype=fp32")
    assert record.status == "fail" and "a torch tensor was given to a Numba function" in record.reason
    assert "arrays(x, out)" in record.reason and len(record.reason.splitlines()) == 2


@pytest.mark.slow
def test_numbas_simulator_takes_tensors_as_numba_does_on_a_gpu(write):
    file = write(
        "direct.py",
        """
        from numba import cuda
        from assay import kernel

        @cuda.jit
        def relu(x, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] = x[i] if x[i] > 0 or x[i] != x[i] else 0

        @kernel("relu")
        def mine(x, *, out):
            relu[(x.numel() + 127) // 128, 128](x, out)
        """,
    )
    single, half = (next(iter(assay.check(file, workload=f"n=300,dtype={d}"))) for d in ("fp32", "bf16"))
    assert single.status == "pass", single.reason
    assert half.status == "fail" and "Numba has no such type" in half.reason and "launch(" in half.reason


def test_code_whose_line_table_nvvm_refuses_is_built_without_one(write):
    """Launched by Numba it has none, and compiles."""
    file = write(
        "search.py",
        """
        from numba import cuda, float64
        from assay import Axis, Tensor, kernel, op
        from assay.backends.numba import launch

        @op(axes={"segments": Axis(min=1), "n": Axis()},
            inputs={"base": Tensor("segments"), "ids": Tensor("n", dtype="int64", index="segments", form="sorted"),
                    "x": Tensor("n")},
            outputs={"out": Tensor("segments")}, dtypes=("fp32",))
        def segment_sum(base, ids, x):
            return base.index_add(0, ids, x)

        @cuda.jit
        def _sums(base, ids, x, out):
            s = cuda.grid(1)
            if s < out.shape[0]:
                low, high = 0, ids.shape[0]
                while low < high:
                    middle = (low + high) // 2
                    if ids[middle] < s:
                        low = middle + 1
                    else:
                        high = middle
                total = float64(base[s])
                while low < ids.shape[0] and ids[low] == s:
                    total += x[low]
                    low += 1
                out[s] = total

        @kernel("segment_sum")
        def by_search(base, ids, x, *, out):
            launch(_sums, -(-out.numel() // 32), 32, base, ids, x, out)
        """,
    )
    (record,) = assay.check(file, workload="segments=3,n=8,dtype=fp32")
    assert record.status == "pass", record.reason
