"""A launch that names what is no kernel of its file is told which kernels the file has."""

import importlib

import pytest

from assay import host, tool
from assay.backends.declaration import kernels
from assay.errors import BuildError
from assay.target import target

SOURCE = """// __global__ void in_a_comment(int n) {}
template <typename T, int N>
__global__ void __launch_bounds__(256) wide(const T* x, T* y) { y[0] = x[N]; }
static __device__ float helper(float x) { return x; }
extern "C" __global__ void plain(float* y) { y[0] = helper(1.0f); }
"""


@pytest.fixture(params=["nvrtc", "nvcc"])
def refused(request):
    if host.cuda_include() is None:
        pytest.skip("no CUDA headers here")
    if request.param == "nvcc":
        try:
            tool.path("nvcc")
        except tool.Missing as missing:
            pytest.skip(str(missing))
    compiler = importlib.import_module(f"assay.backends.{request.param}")

    def build(name, source=SOURCE):
        with pytest.raises(BuildError) as error:
            compiler.build(source, "/folder/k.cu", name, target("sm_90"))
        return error.value

    return build


@pytest.mark.parametrize("name", ["wider<float, 4>", "helper", "in_a_comment"])
def test_the_kernels_of_the_file_are_named_with_their_lines(refused, name):
    error = refused(name)
    assert error.what == f"k.cu has no kernel called `{name.partition('<')[0]}`"
    assert error.fix == "it has: `template <typename T, int N> wide` (k.cu:3), `plain` (k.cu:5)"


def test_template_arguments_that_do_not_fit_are_compared_with_the_declaration(refused):
    error = refused("wide<float>")
    assert error.what == "`wide<float>` is no instance of `template <typename T, int N> wide` in k.cu"
    assert error.fix.endswith("of its declaration (k.cu:3)")
    assert refused("plain<float>").fix == "it is no template (k.cu:5): write `plain`"


def test_an_error_in_the_source_itself_is_the_compilers(refused):
    assert "expected a" in refused("wide<float, 4>", SOURCE.replace("(1.0f);", "(1.0f)")).what


def test_a_declaration_is_found_whatever_stands_before_its_name():
    text = 'extern "C" __global__ __launch_bounds__(128, 2) void a(int n);\n__global__\nvoid\nb() {}\n'
    assert [(k.name, k.line) for k in kernels(text)] == [("a", 1), ("b", 4)]


@pytest.mark.parametrize(("element", "header"), [("__nv_bfloat16", "cuda_bf16.h"), ("__half", "cuda_fp16.h")])
def test_an_element_type_that_no_header_declares_is_named_with_its_header(refused, element, header):
    error = refused(f"wide<{element}, 4>")
    assert error.what == f"`wide<{element}, 4>`: k.cu does not declare `{element}`"
    assert f"`#include <{header}>`" in error.fix and "<assay/vector.cuh>" in error.fix
    known = refused(f"wide<{element}>", f"#include <{header}>\n{SOURCE}")
    assert "is no instance of `template <typename T, int N> wide`" in known.what
