"""Without `backend=`, a kernel's language is that of what its function reaches, whatever else its file holds."""

import pytest

from assay.catalog.select import select
from assay.errors import SourceError

EVERY_LANGUAGE = """
    import math

    import cupy
    import numba
    import torch
    import triton
    import triton.language as tl
    from numba import cuda, njit, vectorize

    from assay import kernel
    from assay.backends.cuda import Source, cdiv
    from assay.backends.cupy import array
    from assay.backends.njit import arrays
    from assay.backends.numba import launch

    SOURCE = Source("k.cu")
    RAW = cupy.RawKernel("", "k")
    LAUNCHERS = {}

    @triton.jit
    def in_tl(x, y, n, BLOCK: tl.constexpr): ...

    LAUNCHERS["triton"] = in_tl

    @cuda.jit
    def on_gpu(x, y): ...

    @njit
    def inner(v):
        return math.tanh(v)

    @njit
    def loop(x, y):
        y[0] = inner(x[0])

    @vectorize(["float32(float32)"], target="cuda")
    def ufunc(x):
        return x

    @torch.compile
    def compiled(x):
        return x

    if torch.cuda.is_available():
        def started(*tensors):
            on_gpu[1, 32](*tensors)

    def directly(x, y):
        in_tl[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), 64)

    @kernel("gelu")
    def triton_(x, *, out):
        directly(x, out)

    @kernel("gelu")
    def triton_table(x, *, out):
        LAUNCHERS["triton"][(cdiv(x.numel(), 64),)](x, out, x.numel(), 64)

    @kernel("gelu")
    def numba_(x, *, out):
        started(x, out)

    @kernel("gelu")
    def numba_ufunc(x, *, out):
        ufunc(x, out=out)

    @kernel("gelu")
    def njit_(x, *, out):
        loop(*arrays(x, out))

    @kernel("gelu")
    def cuda_(x, *, out):
        SOURCE["k"](triton.cdiv(x.numel(), 64), 64, x, out)

    @kernel("gelu")
    def cupy_(x, *, out):
        RAW((1,), (1,), (array(x), array(out)))

    @kernel("gelu")
    def inductor_(x, *, out):
        out.copy_(compiled(x))

    @kernel("gelu")
    def torch_(x, *, out):
        cuda = torch.nn.functional.gelu(x)
        out.copy_(cuda)
"""


def test_each_kernel_of_a_file_has_the_language_of_what_it_reaches(write):
    languages = {k.function: k.address.backend for k, _ in select([write("k.py", EVERY_LANGUAGE)])}
    assert len(languages) == 9
    assert {function: function.partition("_")[0] for function in languages} == languages


def test_a_helper_of_assay_or_one_inside_a_function_shows_the_language(write):
    source = """
        from assay import kernel
        from assay.backends.njit import arrays

        @kernel("gelu")
        def njit_(x, *, out):
            arrays(x, out)

        @kernel("gelu")
        def triton_(x, *, out):
            from peers import gelu_kernel, triton
            gelu_kernel[(triton.cdiv(x.numel(), 64),)](x, out)
    """
    write("peers.py", "import triton\nfrom deeper import gelu_kernel\n")
    write("deeper.py", "from triton import jit\nfrom peers import triton\n@jit\ndef gelu_kernel(x, y): ...\n")
    kernels = [k for k, _ in select([write("k.py", source)])]
    assert [k.name for k in kernels] == ["gelu/njit:njit_", "gelu/triton:triton_"]


@pytest.mark.parametrize(
    ("imports", "body", "what", "fix"),
    [
        (
            "from numba import cuda, njit\n@njit\ndef a(x): ...\n@cuda.jit\ndef b(x): ...",
            "a(x) if x.is_cpu else b[1, 1](x)",
            "reaches njit (`numba.njit`, line 3) and numba (`numba.cuda.jit`, line 5)",
            'write backend="njit" or backend="numba"',
        ),
        ("from some_package import gelu", "gelu(x, out=out)", "calls `some_package.gelu`", 'write backend="…"'),
    ],
)
def test_where_nothing_or_two_languages_decide_backend_is_asked_for(imports, body, what, fix, write, tmp_path):
    source = f'from assay import kernel\n{imports}\n@kernel("gelu")\ndef f(x, *, out):\n    {body}\n'
    (tmp_path / "k.py").write_text(source)
    with pytest.raises(SourceError) as refused:
        select([tmp_path / "k.py"])
    assert what in refused.value.what and fix in refused.value.fix
    (tmp_path / "k.py").write_text(source.replace('"gelu")', '"gelu", backend="njit")'))
    assert [k.name for k, _ in select([tmp_path / "k.py"])] == ["gelu/njit:f"]
