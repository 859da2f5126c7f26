"""What a kernel would launch is built without a GPU, for any target, as the real launch would build it."""

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from assay import host
from assay.backends import Level, backend
from assay.catalog import library
from assay.catalog.reader import kernels_in, kernels_in_cuda
from assay.catalog.select import select
from assay.errors import BuildError, UsageError
from assay.inspect.build import launches
from assay.isa import cubin, sass
from assay.target import Target
from assay.worker import Pool
from assay.worker.questions import Build
from assay.worker.request import Call
from assay.workload import Workload

ROWS = "rows=1000,cols=1024,dtype=bf16"
CASES = {
    # kernel: (workload, grid, block)
    "gelu/triton": ("n=1000000,dtype=bf16", (977,), (128,)),
    "gelu/numba": ("n=1000000,dtype=bf16", (7813,), (128,)),
    "gelu/cuda": ("n=1000000,dtype=bf16", (489,), (256,)),
    "gelu/cupy": ("n=1000000,dtype=bf16", (7813,), (128,)),
    "layernorm/triton": (ROWS, (500,), (64,)),
    "layernorm/numba": (ROWS, (1000,), (32,)),
    "layernorm/cuda": (ROWS, (250,), (128,)),
    "layernorm/cupy": (ROWS, None, None),
    "softmax/triton": (ROWS, (1000,), (64,)),
    "softmax/numba": (ROWS, (1000,), (64,)),
    "softmax/cuda": (ROWS, (125,), (256,)),
    "softmax/cupy": (ROWS, (1000,), (256,)),
    "transpose/triton": ("rows=1000,cols=1000,dtype=bf16", (64,), (256,)),
    "transpose/cuda": ("rows=1000,cols=1000,dtype=bf16", (64,), (256,)),
    "transpose/triton:tiled": ("rows=1000,cols=1000,dtype=fp32", (256,), (128,)),
    "transpose/numba:tiled": ("rows=1000,cols=1000,dtype=fp32", (1024,), (32, 4)),
    "transpose/cuda:tiled": ("rows=1000,cols=1000,dtype=fp32", (1024,), (32, 8)),
    "sum/triton": ("n=1000000,dtype=bf16", None, None),
    "sum/cuda": ("n=1000000,dtype=bf16", None, None),
    "conv2d/triton": ("n=4,c=16,h=28,w=28,k=32,dtype=bf16", (49,), (128,)),
    "conv2d/cuda": ("n=4,c=16,h=28,w=28,k=32,dtype=bf16", (28,), (128,)),
}
BUILT_AS = {"sm_90": "sm_90a", "sm_100": "sm_100a"}
"""By Triton and Numba."""
EVERYWHERE = ("gelu",)
"""Ops built for every target; for the others sm_80 and sm_100 are left to `make selftest`."""


def points():
    for name in CASES:
        for target in ("sm_80", "sm_90", "sm_100"):
            quick = target == "sm_90" or name.split("/")[0] in EVERYWHERE
            yield pytest.param(name, target, marks=[] if quick else [pytest.mark.whole])


@pytest.fixture(scope="module")
def pool():
    with Pool() as pool:
        yield pool


@pytest.fixture(scope="module")
def built(pool):
    """What a kernel of the library, or a file of the user's, would launch."""

    def build(what, workload, target="sm_90", **parameters):
        ((kernel, op),) = select([what])
        return launches(kernel, Workload.of(op, workload), Target(target), pool, parameters)

    return build


@pytest.mark.parametrize(("name", "target"), list(points()))
def test_every_launch_is_built_whole(name, target, built):
    workload, grid, block = CASES[name]
    language = name.split("/")[1].split(":")[0]
    found = built(name, workload, target)
    assert found
    for launch in found:
        artifact = launch.artifact
        assert artifact.symbol in [f.symbol for f in cubin.functions(artifact.cubin)]
        assert f".entry {artifact.symbol}(".encode() in artifact.ptx
        assert str(artifact.target) == (BUILT_AS.get(target, target) if language in ("triton", "numba") else target)
        assert f".target {artifact.target}".encode() in artifact.ptx
        assert 0 < artifact.registers <= 255
        assert grid is None or launch.grid == grid
        assert block is None or launch.block == block
        assert bool(artifact.ir.get("ttgir")) == (language == "triton")


def test_a_tritons_launch_carries_the_shared_memory_it_asks_for(built):
    (tiled,) = built("transpose/triton:tiled", "rows=1000,cols=1000,dtype=fp32")
    assert tiled.shared == 64 * 64 * 4
    (gelu,) = built("gelu/triton", "n=4096,dtype=fp32")
    assert gelu.shared == 0 and gelu.artifact.spills == 0


@pytest.mark.parametrize("sizes", ["rows=1001,cols=1000", "rows=1000,cols=1001", "rows=1000,cols=1000,offset=1"])
def test_a_transpose_moves_single_elements_where_a_vector_would_be_cut_or_not_aligned(built, sizes):
    (whole,) = built("transpose/cuda", "rows=1000,cols=1000,dtype=bf16")
    (cut,) = built("transpose/cuda", f"{sizes},dtype=bf16")
    assert whole.artifact.name.startswith("turned<") and cut.artifact.name.startswith("tiled<")


def test_a_sum_is_one_launch_if_a_block_has_all_and_two_else(built):
    assert [launch.grid for launch in built("sum/cuda", "n=1000,dtype=bf16")] == [(1,)]
    assert [launch.grid for launch in built("sum/cuda", "n=1000000,dtype=bf16")] == [(62,), (1,)]
    assert [launch.grid for launch in built("sum/cuda", "n=100000000,dtype=bf16")] == [(264,), (1,)]


@pytest.mark.parametrize("op", ["softmax", "layernorm", "rmsnorm", "ln_gelu"])
def test_a_row_that_no_block_holds_is_held_by_a_cluster_where_there_are_clusters(op, built):
    long = "rows=4,cols=262144,dtype=bf16"
    (one,) = built(f"{op}/cuda", long)
    assert one.artifact.name.startswith(f"{op}_whole<") and one.cluster == 16 and one.grid == (64,)
    two = built(f"{op}/cuda", long, "sm_80")
    assert [launch.artifact.name.partition("<")[0] for launch in two] == [f"{op}_parts_read", f"{op}_parts_write"]


def test_spills_are_what_ptxas_says(built, write, tmp_path):
    file = write(
        "cramped.py",
        """
        import triton
        import triton.language as tl
        from assay import kernel

        @triton.jit
        def _cramped(x, y, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            v = tl.load(x + i)
            tl.store(y + i, v / tl.sum(v, 0))

        @kernel("gelu")
        def cramped(x, *, out):
            _cramped[(1,)](x, out, x.numel(), num_warps=1, maxnreg=32)
    """,
    )
    (launch,) = built(file, "n=2048,dtype=fp32")
    assert launch.artifact.registers <= 32 and "maxnreg=32" in launch.artifact.name
    source = tmp_path / "kernel.ptx"
    source.write_bytes(launch.artifact.ptx)
    spec = importlib.util.find_spec("triton")
    ptxas = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"
    said = subprocess.run(
        [ptxas, "-v", "-arch=sm_90a", source, "-o", tmp_path / "kernel.cubin"],
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    stack, stores = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", said).groups()
    assert launch.artifact.spills == int(stack) > 0 and int(stores) > 0


def widths(launch, opcode="LDG"):
    (function,) = sass.disassemble(launch.artifact.cubin).values()
    return {next((m for m in i.modifiers if m.isdigit()), "32") for i in function.instructions if i.opcode == opcode}


@pytest.mark.slow
def test_triton_specializes_on_what_the_launch_would_see(built):
    """Wide loads need pointers and n divisible by 16; without the specialization inspect would show other code."""
    (even,) = built("gelu/triton", "n=1048576,dtype=fp32")
    assert widths(even) == {"128"} and "x: *fp32:16, y: *fp32:16, n: i32:16" in even.artifact.name
    (odd,) = built("gelu/triton", "n=1000003,dtype=fp32")
    assert widths(odd) == {"32"} and "x: *fp32:16, y: *fp32:16, n: i32," in odd.artifact.name
    (misaligned,) = built("gelu/triton", "n=1048576,dtype=fp32,offset=1")
    assert widths(misaligned) == {"32"} and "x: *fp32, y: *fp32, n: i32:16" in misaligned.artifact.name
    (one,) = built("gelu/triton", "n=1,dtype=fp32")
    assert "n=1," in one.artifact.name
    (huge,) = built("gelu/triton", "n=2147483648,dtype=bf16")
    assert "n: i64:16" in huge.artifact.name
    assert len({x.artifact.text_hash for x in (even, odd, misaligned, one, huge)}) == 5


AHEAD_OF_TIME = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from assay.isa import cubin
from assay.library.silu.triton import _silu

signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
for known in ([0, 1, 2], [0, 1], [2]):
    attributes = {(i,): [["tt.divisibility", 16]] for i in known}
    source = ASTSource(_silu, signature, {"BLOCK": 1024}, attributes)
    kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    (function,) = cubin.functions(kernel.asm["cubin"])
    print(function.text_hash)
"""


@pytest.mark.slow
def test_triton_gives_the_machine_code_of_its_ahead_of_time_compiler(built, tmp_path):
    """Told the specialization by hand, `triton.compile` makes the same code."""
    done = python(AHEAD_OF_TIME, TRITON_CACHE_DIR=str(tmp_path))
    traced = [
        built("silu/triton", w)[0].artifact.text_hash
        for w in ("n=1048576,dtype=fp32", "n=1000003,dtype=fp32", "n=1048576,dtype=fp32,offset=1")
    ]
    assert done.split() == traced


def python(program, **environment):
    environment = os.environ | {"PYTHONPATH": str(library.ROOT.parents[1])} | environment
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_numba_types_its_arguments_as_the_launch_would(built):
    (gelu,) = built("gelu/numba", "n=4096,dtype=bf16")
    assert gelu.artifact.name == "_gelu(array(uint16, 1d, C), array(uint16, 1d, C))"
    (softmax,) = built("softmax/numba", "rows=64,cols=100,dtype=fp32,strided=x")
    assert softmax.artifact.name == "_softmax(array(float32, 2d, A), array(float32, 2d, C))"
    (transpose,) = built("transpose/numba:tiled", "rows=64,cols=100,dtype=fp16")
    assert transpose.artifact.name == "_transpose(array(float16, 1d, C), int64, array(float16, 2d, C))"


def test_numba_links_as_it_does_for_a_launch_and_keeps_the_lines(built):
    (launch,) = built("softmax/numba", "rows=64,cols=100,dtype=fp32")
    assert launch.artifact.compiler.startswith("numba-cuda ") and "nvjitlink" in launch.artifact.compiler
    assert launch.artifact.ir["llir"].startswith("; ModuleID")
    (function,) = sass.disassemble(launch.artifact.cubin).values()
    file = str(library.ROOT / "softmax" / "numba.py")
    assert {i.source.file for i in function.instructions if i.source} == {file}
    barriers = [i for i in function.instructions if i.opcode == "BAR"]
    ptx = launch.artifact.ptx.decode().splitlines()
    assert barriers and all("bar.sync" in ptx[i.ptx - 1] for i in barriers)
    python = (library.ROOT / "softmax" / "numba.py").read_text().splitlines()
    assert {python[i.source.line - 1].strip() for i in barriers} == {"cuda.syncthreads()"}


@pytest.mark.parametrize("name", ["softmax/triton", "softmax/numba"])
def test_building_twice_gives_the_same_machine_code(name, built, monkeypatch, tmp_path):
    """In two processes; Triton's second with an empty cache."""
    (first,) = built(name, "rows=64,cols=100,dtype=fp16")
    if name == "softmax/triton":
        monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
        with Pool() as pool:
            ((kernel, op),) = select([name])
            (second,) = launches(kernel, Workload.of(op, "rows=64,cols=100,dtype=fp16"), Target("sm_90"), pool)
    else:
        (second,) = built(name, "rows=64,cols=100,dtype=fp16")
    assert second.artifact.text_hash == first.artifact.text_hash
    assert second.artifact.ptx == first.artifact.ptx
    assert second.artifact.ir == first.artifact.ir


@pytest.mark.parametrize("language", ["triton", "numba"])
def test_a_workers_build_gives_the_same_in_summary(language, built, pool):
    ((kernel, op),) = select([f"gelu/{language}"])
    workload = Workload.of(op, "n=4096,dtype=fp32")
    worker = pool.worker(language, "native")
    (launched,) = worker.ask(Build(Call.of(kernel, workload, "native", {}), "sm_90")).launches
    worker.close()
    (whole,) = built(kernel.name, str(workload))
    assert launched.artifact == whole.artifact.summary() and "ir" not in launched.artifact
    assert tuple(launched.grid) == whole.grid and tuple(launched.block) == whole.block


@pytest.mark.skipif(host.runs_on_gpu(), reason="only where they do not run")
def test_a_check_still_interprets_what_can_now_be_built():
    assert {backend(n).availability().level for n in ("triton", "numba")} == {Level.INTERPRET}


def test_nothing_is_launched_on_nothing(built):
    assert built("gelu/triton", "n=0,dtype=fp32") == built("gelu/numba", "n=0,dtype=fp32") == []


def test_several_launches_come_in_order(built):
    found = built("layernorm_backward/triton", "rows=64,cols=100,dtype=fp32")
    names = [x.artifact.name.split("[")[0] for x in found]
    assert names == ["_backward_kept", "_column_sums", "_column_sums"]


IN_ONE_PROCESS = """
import torch
from numba import cuda
from numba.cuda import dispatcher, types
from numba.cuda.core.targetconfig import TargetConfig
from numba.cuda.cudadrv import devices, driver as numba_driver
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from assay.backends import backend
from assay.isa import cubin
from assay.library.gelu import numba as in_numba, triton as in_triton
from assay.target import Target

def state():
    return [driver._active, JITFunction.run, Autotuner.run, dispatcher.CUDADispatcher.configure,
            dispatcher.get_current_device, devices.get_context, cuda.as_cuda_array, TargetConfig.get_mangle_string,
            len(in_triton._gelu.device_caches), len(in_numba._gelu.overloads)]

before, x = state(), torch.empty(100)
for name, kernel in (("triton", in_triton), ("numba", in_numba)):
    with backend(name).tracing(Target("sm_80")) as launches:
        kernel.gelu(x, out=torch.empty_like(x))
        assert state() != before
        if name == "numba":
            vector, function = types.Array(types.float32, 1, "C"), in_numba._gelu
            plain = dispatcher._Kernel(function.py_func, (vector, vector), **function.targetoptions)
            (plain,) = cubin.functions(plain.library.get_cubin().code)
    assert len(launches) == 1
    try:
        with backend(name).tracing(Target("sm_80")):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
numba_driver._have_nvjitlink = lambda: False
direct = cuda.jit(in_numba._gelu.py_func, lto=False)
with backend("numba").tracing(Target("sm_80")) as assembled:
    direct[(4, 1), 32, 0, 16](cuda.as_cuda_array(x), cuda.as_cuda_array(x))
(assembled,) = assembled
print("restored:", state() == before)
print("same code:", launches[0].artifact.text_hash == plain.text_hash)
print("without nvJitLink:", assembled.artifact.compiler, assembled.grid, assembled.block, assembled.shared)
print("same symbol:", launches[0].artifact.symbol.replace("B2v1", "B2v2") == plain.symbol)
"""


@pytest.fixture(scope="module")
def in_one_process():
    return python(IN_ONE_PROCESS).splitlines()


@pytest.mark.slow
def test_the_context_leaves_triton_and_numba_as_they_were(in_one_process):
    assert "restored: True" in in_one_process


@pytest.mark.slow
def test_numbas_line_table_changes_neither_code_nor_symbol(in_one_process):
    """A launch builds without one; Numba counts its builds in the symbol (`B2v1`, `B2v2`)."""
    assert "same code: True" in in_one_process
    assert "same symbol: True" in in_one_process


@pytest.mark.slow
def test_where_the_driver_would_link_for_numba_ptxas_does_and_the_artifact_says_so(in_one_process):
    (said,) = (line for line in in_one_process if line.startswith("without nvJitLink:"))
    assert re.search(r"ptxas 13\.\d+\.\d+ in place of the driver's linker \(4,\) \(32,\) 16$", said)


def test_an_autotuned_kernel_is_built_in_its_first_configuration_and_says_so(built, write):
    file = write(
        "tuned.py",
        """
        import triton
        import triton.language as tl
        from assay import kernel

        @triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((512, 2), (1024, 4))], key=["n"])
        @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
        @triton.jit
        def _relu(x, y, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            if EVEN:
                tl.store(y + i, tl.load(x + i))
            else:
                tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)

        @kernel("gelu")
        def relu(x, *, out):
            _relu[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    """,
    )
    (launch,) = built(file, "n=5120,dtype=fp32")
    assert launch.grid == (10,) and launch.block == (64,)
    assert "EVEN=True, BLOCK=512, num_warps=2" in launch.artifact.name
    assert launch.artifact.name.endswith("the first of 2 configurations to be tuned")


REFUSED = {
    "triton": """
        import triton
        import triton.language as tl
        from assay import kernel

        @triton.jit
        def _inner(v):
            return v + missing

        @triton.jit
        def _gelu(x, y):
            tl.store(y, _inner(tl.load(x)))

        @kernel("gelu")
        def gelu(x, *, out):
            _gelu[(1,)](x, out)
    """,
    "numba": """
        from numba import cuda
        from assay import kernel
        from assay.backends.numba import launch

        @cuda.jit
        def _gelu(x, y):
            y[0] = x[0] + "missing"

        @kernel("gelu")
        def gelu(x, *, out):
            launch(_gelu, 1, 1, x, out)
    """,
    "cuda": """
        // assay: gelu<T><<<1, 1>>>(x, out)
        template <typename T> __global__ void gelu(const T* x, T* y) {
          y[0] = missing(x[0]);
        }
    """,
}


@pytest.mark.parametrize("language", REFUSED)
def test_a_compilers_refusal_names_the_line(language, pool, write):
    text = textwrap.dedent(REFUSED[language])
    file = write("bad.cu" if language == "cuda" else "bad.py", text)
    kernel = kernels_in_cuda(file, library.ops()["gelu"])[0] if language == "cuda" else kernels_in(file)[0]
    op = library.ops()["gelu"]
    with pytest.raises(BuildError) as caught:
        launches(kernel, Workload.of(op, "n=64,dtype=fp32"), Target("sm_90"), pool)
    line = next(n for n, words in enumerate(text.splitlines(), 1) if "missing" in words)
    assert caught.value.where == f"{file}:{line}"
    assert "refused" in caught.value.what


@pytest.mark.parametrize("name", ["gelu/torch", "gelu/njit", "layernorm/inductor"])
def test_languages_without_machine_code_of_ours_are_refused(name, built):
    with pytest.raises(UsageError, match="cuda, cupy, triton, numba"):
        built(name, "dtype=fp32")
