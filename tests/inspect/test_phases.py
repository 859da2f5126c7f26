"""nvcc's steps, run one by one: the same code as nvcc's own, every intermediate file, and errors with file and line."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from assay import host
from assay.backends.nvrtc import HEADERS
from assay.catalog import library
from assay.errors import BuildError, UsageError
from assay.inspect.phases import many, phases, running
from assay.isa import cubin as cubins
from assay.target import Target

pytestmark = pytest.mark.skipif(
    host.tool("nvcc") is None or shutil.which("gcc") is None, reason="no nvcc or host compiler here"
)

SM_80, SM_90, SM_90A = Target("sm_80"), Target("sm_90"), Target("sm_90a")
COMPILE = ["preprocess", "cudafe++", "preprocess", "cicc", "ptxas", "fatbinary", "host compile"]
LINK = ["clean", "nvlink", "fatbinary", "host compile", "link"]

KERNEL = """\
#include "my scale.h"
namespace { __global__ void hidden(float* x) { x[threadIdx.x] = sinf(x[threadIdx.x]) * SCALE; } }
template <int N> __global__ void unrolled(float* x) {
#pragma unroll
    for (int i = 0; i < N; i++) x[i] += x[i + N];
}
void go(float* x) { hidden<<<1, 32>>>(x); unrolled<8><<<1, 1>>>(x); }
"""
PROGRAM = """\
#include <cstdio>
#define START main
__global__ void k(float* x) { x[0] = 1; }
int START() { k<<<1, 1>>>(nullptr); std::puts("it ran"); return 0; }
"""


def texts(cubin):
    found = {f.symbol: f.text for f in cubins.functions(cubin)}
    assert found and all(found.values())
    return found


def by_nvcc(source, target, folder):
    arch = target.name.removeprefix("sm_")
    made = folder / f"nvcc.{arch}.cubin"
    command = [host.tool("nvcc"), "-cubin", "-gencode", f"arch=compute_{arch},code=sm_{arch}", source, "-o", made]
    subprocess.run(command, check=True)
    return made.read_bytes()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The steps of one file that includes another, both with blanks in their names: (file, what came of it)."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "my scale.h").write_text("#define SCALE 2.5f\n")
    file = folder / "it's a kernel.cu"
    file.write_text(KERNEL)
    return file, phases(file, [SM_90A], folder / "out")


@pytest.mark.slow
def test_the_replayed_steps_give_the_code_that_nvcc_gives(compiled, tmp_path):
    """Copied alone to an empty folder with a blank in its name, and called from another one."""
    kernel, result = compiled
    (build,) = result.builds
    assert build.error is None
    alone = tmp_path / "some where"
    alone.mkdir()
    script = shutil.copy(result.replay, alone)
    subprocess.run([script], cwd="/", check=True, env={"PATH": os.environ["PATH"]})
    replayed = (alone / str(build.target) / f"{kernel.stem}.cubin").read_bytes()
    own = texts(by_nvcc(kernel, build.target, tmp_path))
    assert texts(replayed) == own
    assert texts(build.made(".cubin").read_bytes()) == own
    assert cubins.target(replayed) == build.target


@pytest.mark.slow
def test_the_steps_are_those_of_nvcc_and_each_reads_what_one_before_it_wrote(compiled):
    kernel, result = compiled
    (build,) = result.builds
    assert [s.name for s in build.steps] == COMPILE, "no main: an object is the end"
    assert all(s.seconds > 0 for s in build.steps)
    written = {}
    for step in build.steps:
        assert step.writes, step.name
        for file in step.reads:
            assert file.path in written if "/" not in file.path else True, (step.name, file.path)
        written |= {f.path: f.size for f in step.writes}
    assert written == {f.name: f.stat().st_size for f in build.folder.iterdir()}, "every file is some step's"
    first = build.steps[0]
    assert {f.path for f in first.reads} == {str(kernel), str(kernel.parent / "my scale.h")}
    host_compile = build.steps[-1]
    assert f"{kernel.stem}.fatbin.c" in {f.path for f in host_compile.reads}, "by way of two #includes"
    assert "NVVMIR_LIBRARY_DIR" in build.steps[3].environment


@pytest.mark.slow
@pytest.mark.parametrize("op", ["gelu", "layernorm"])
def test_a_library_kernel_finds_assays_own_headers_also_in_another_place(op, tmp_path):
    (kernel,) = {k.file.parent / "kernel.cu" for k in library.kernels() if k.name == f"{op}/cuda"}
    result = phases(kernel, [SM_90], tmp_path / "out")
    (build,) = result.builds
    assert build.error is None, build.error
    headers = {Path(f.path) for f in build.steps[0].reads if f.path.endswith(".cuh")}
    assert headers and all(h.is_relative_to(HEADERS) or h.parent == kernel.parent for h in headers)
    for folder, code in ((shutil.copytree(HEADERS, tmp_path / "moved"), 0), (tmp_path / "empty", 1)):
        environment = dict(os.environ) | {"HEADERS": str(folder)}
        ran = subprocess.run(["sh", result.replay], check=False, env=environment, capture_output=True, text=True)
        assert ran.returncode == code and ("fatal error: assay/" in ran.stderr) == bool(code), ran.stderr


@pytest.mark.slow
def test_a_main_behind_a_macro_is_seen_and_the_program_is_linked(write, tmp_path):
    result = phases(write("m.cu", PROGRAM), [SM_90], tmp_path / "out", ["-rdc=true"])
    (build,) = result.builds
    assert build.error is None
    assert [s.name for s in build.steps] == COMPILE + LINK
    program = build.made("")
    program.unlink()
    subprocess.run([result.replay], check=True)
    assert subprocess.run([program], capture_output=True, text=True).stdout == "it ran\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "step", "line", "words"),
    [
        ('\n#include "nope.h"\n', "preprocess", 2, "nope.h"),
        ("\n\n__global__ void k() { nope(); }", "cudafe++", 3, "identifier"),
        ('\n\n\n__global__ void k() {\n    asm("bad.op r1;");\n}', "ptxas", 5, "bad"),
        ("#ifdef __CUDA_ARCH__\n#error only there\n#endif\n", "preprocess", 2, "only there"),
        (
            "__global__ void k(float* x) {"
            " __shared__ float a[99999]; a[threadIdx.x] = *x; __syncthreads(); *x = a[3]; }",
            "ptxas",
            None,
            "too much shared data",
        ),
        ("void f();\nint main() { f(); }", "link", None, "undefined reference"),
    ],
)
def test_a_step_that_fails_stops_it_with_the_tools_words_file_and_line(write, tmp_path, source, step, line, words):
    file = write("bad.cu", source)
    (build,) = phases(file, [SM_90], tmp_path / "out").builds
    assert isinstance(build.error, BuildError)
    assert build.steps[-1].name == step
    assert words in build.error.what
    assert build.error.where == (f"{file}:{line}" if line else str(file))
    assert build.error.fix


@pytest.mark.slow
def test_a_target_that_fails_leaves_the_others_and_comes_last_in_the_script(write, tmp_path):
    source = "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900\n#error too old\n#endif\n__global__ void k() {}\n"
    result = phases(write("new.cu", source), [SM_80, SM_90], tmp_path / "out")
    old, new = result.builds
    assert old.error.where.endswith("new.cu:2") and new.error is None
    new.made(".cubin").unlink()
    done = subprocess.run([result.replay], capture_output=True, text=True)
    assert done.returncode and "too old" in done.stderr
    assert new.made(".cubin").exists()


@pytest.mark.slow
def test_many_files_and_targets_at_once_and_one_broken_one(write, tmp_path):
    good, broken = write("good.cu", "__global__ void k(float* x) { x[0] = 1; }"), write("broken.cu", "what")
    (tmp_path / "other").mkdir()
    twin = write("other/good.cu", "__global__ void twin(float* x) { x[0] = 2; }")
    missing, said, out = tmp_path / "missing.cu", [], tmp_path / "out"
    builds = list(many([good, broken, twin, missing], [SM_80, SM_90], out, 2, lambda text, done: said.append(done)))
    assert said == list(range(1, 9))
    assert {(b.file, b.target) for b in builds} == {
        (f, t) for f in (good, broken, twin, missing) for t in (SM_80, SM_90)
    }
    for build in builds:
        assert (build.error is None) == (build.file in (good, twin))
        assert (build.folder.parent / "replay.sh").exists()
    symbols = {b.file: cubins.functions(b.made(".cubin").read_bytes())[0].symbol for b in builds if not b.error}
    assert symbols == {good: "_Z1kPf", twin: "_Z4twinPf"}


def test_who_stops_reading_stops_the_work(write, tmp_path):
    files = [write(f"k{i}.cu", "__global__ void k() {}") for i in range(6)]
    results = many(files, [SM_90], tmp_path / "out")
    next(results)
    results.close()
    finished = [f for f in files if (tmp_path / "out" / f.stem / "sm_90" / f"{f.stem}.o").exists()]
    assert len(finished) <= 2


def test_a_step_beyond_its_time_is_ended(write, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "LIMIT", 0.1)
    long = "".join(f"int f{i}() {{ return {i}; }}\n" for i in range(40_000))
    (build,) = phases(write("long.cu", long), [SM_90], tmp_path / "out").builds
    assert "was ended after" in build.error.what and build.error.fix


@pytest.mark.parametrize("word", ["-c", "-o", "-arch=sm_80", "--keep", "-ptx", "-gencode"])
def test_what_is_chosen_here_cannot_be_chosen_twice(write, tmp_path, word):
    with pytest.raises(UsageError, match="chosen by assay"):
        phases(write("k.cu", ""), [SM_90], tmp_path, [word])


def test_what_nvcc_itself_refuses(write, tmp_path):
    (build,) = phases(write("k.cu", ""), [Target("sm_30")], tmp_path).builds
    assert "Unsupported gpu architecture" in build.error.what and build.error.fix
    with pytest.raises(UsageError):
        phases(write("k.cu", ""), [Target("cpu")], tmp_path)
