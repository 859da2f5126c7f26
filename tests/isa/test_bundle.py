"""Kernels of several cubins in one: what is read from it is what each of them says."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import host
from assay.backends import nvrtc
from assay.catalog import library
from assay.inspect.summary import summary
from assay.inspect.table import table, tables
from assay.isa import cubin as cubins
from assay.isa.bundle import bundle
from assay.isa.cubin import Function
from assay.target import Target


def built(op, name, target):
    file = library.ROOT / op / "kernel.cu"
    return nvrtc.build(file.read_text(), str(file), name, Target(target))


@pytest.fixture(scope="module")
def cubin():
    return built("silu", "silu<float, 4>", "sm_90a").cubin


functions = st.lists(
    st.builds(
        lambda words, registers: Function("", bytes(16 * words), registers, 0, None),
        st.integers(1, 40),
        st.integers(1, 255),
    ),
    max_size=30,
)


@given(functions)
def test_a_bundle_is_a_cubin_for_the_same_target_with_all_its_functions(cubin, listed):
    joined = bundle(cubin, listed)
    assert cubins.target(joined) == cubins.target(cubin)
    read = cubins.functions(joined)
    assert [f.symbol for f in read] == [str(i) for i in range(len(listed))]
    assert [(f.text, f.registers) for f in read] == [(f.text, f.registers) for f in listed]


@pytest.mark.slow
@pytest.mark.skipif(host.tool("nvdisasm") is None, reason="no nvdisasm")
def test_code_that_is_disassembled_in_a_bundle_reads_as_it_does_alone():
    """But for source lines, which are left behind."""
    names = {"silu": "silu<float, 4>", "gelu": "gelu<__half, 8, Tanh>", "softmax": "softmax_online<float, 4>"}
    artifacts = [built(op, name, "sm_90") for op, name in names.items()]
    code = [cubins.functions(a.cubin)[0] for a in artifacts]
    together = tables(bundle(artifacts[0].cubin, code))
    for i, (artifact, function) in enumerate(zip(artifacts, code, strict=True)):
        alone = table(artifact.cubin, artifact.symbol)
        assert [(r.opcode, r.encoding) for r in together[str(i)].rows] == [(r.opcode, r.encoding) for r in alone.rows]
        assert [r.live_registers for r in together[str(i)].rows] == [r.live_registers for r in alone.rows]
        one, other = (summary(t, function, artifact.target, None, 0, None) for t in (alone, together[str(i)]))
        assert replace(one, loops=[]) == replace(other, loops=[]) and len(one.loops) == len(other.loops)
        assert [loop.cycles for loop in one.loops] == [loop.cycles for loop in other.loops]
