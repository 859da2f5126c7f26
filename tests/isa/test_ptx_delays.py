"""PTX in which warps wait at random before they access memory."""

import re
import subprocess
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import host
from assay.isa.ptx import architecture
from assay.isa.ptx.delays import delayed
from ptx_texts import NVRTC, by_nvrtc, has_nvrtc

WAIT = re.compile(r"^\{ \.reg \.b64 %assay_g;.*\}\n", re.MULTILINE)
COUNTER = "\n\t.reg .b32 %assay_n; mov.b32 %assay_n, 0;"
ORDINARY = (
    "\tld.global.nc.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd4];",
    "\t@%p1 ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];",
    "\t@!%p2 st.shared.b32 [%r3], %r4;",
    "\tld.volatile.shared.u32 %r1, [%r2];",
    "\tatom.global.add.u32 %r1, [%rd1], 1;",
    "\tred.global.add.f32 [%rd1], %f1;",
    "\tcp.async.ca.shared.global [%r1], [%rd1], 4;",
    "\tcp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3];",
    "\tldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];",
    "\tld.f32 %f1, [%rd1];",
)
INITIALISED = "\tmbarrier.init.shared::cta.b64 [%r1], 1;"
ACCESSES = (*ORDINARY, INITIALISED)
OTHERS = (
    "\tld.param.u64 \t%rd1, [kernel_param_0];",
    "\tst.param.b32 \t[param0+0], %r1;",
    "\tld.local.f32 %f1, [%SP+4];",
    "\tld.const.f32 %f1, [table];",
    "\tbar.sync \t0;",
    "\tadd.f32 %f1, %f2, %f3;",
    "$L__BB0_2:",
    "// ld.global is what follows",
    "\t.shared .align 4 .b8 stage[1024];",
    "\tldu;",
    "\tstack = 1;",
)


@pytest.mark.parametrize("line", ACCESSES)
def test_a_warp_may_wait_before_every_access_that_others_see(line):
    assert len(WAIT.findall(delayed(line + "\n"))) == 1


@pytest.mark.parametrize("line", OTHERS)
def test_nothing_waits_before_what_only_its_own_thread_sees(line):
    assert delayed(line + "\n") == line + "\n"


@given(st.lists(st.sampled_from(ACCESSES + OTHERS), max_size=30))
def test_without_the_waits_it_is_the_same_text(lines):
    text = "".join(f"{line}\n" for line in lines)
    changed = delayed(text)
    assert WAIT.sub("", changed) == text
    assert len(WAIT.findall(changed)) == sum(line in ACCESSES for line in lines)


def test_the_control_differs_in_nothing_but_the_chance():
    random, still = (delayed("\n".join(ACCESSES) + "\n", still=still) for still in (False, True))
    assert random != still
    assert re.sub(r"%assay_l, 4096;", "%assay_l, 0;", random) == still


def test_a_thread_counts_its_waits_in_every_function():
    body = f"{{\n{ORDINARY[0]}\nret;\n}}\n"
    text = (
        f".func (.param .b32 r) f(.param .b32 a);\n.func g()\n{body}.visible .entry k(\n)\n.maxntid 128, 1, 1\n{body}"
    )
    changed = delayed(text)
    assert changed.count(COUNTER) == 2 and WAIT.sub("", changed).replace(COUNTER, "") == text


def test_each_launch_waits_at_another_quarter_of_the_places():
    """And any two places often wait without each other: an evaluation of what the code computes."""
    waits = _waiting(delayed("\n".join(ORDINARY * 4) + "\n"))
    launches = range(1000, 3000)
    for place, at in enumerate(found := [{n for n in launches if wait(n)} for wait in waits]):
        assert 0.2 < len(at) / len(launches) < 0.3
        assert all(len(at - other) / len(launches) > 0.1 for other in found[:place])


def test_every_launch_waits_before_a_barrier_is_initialised():
    (wait,) = _waiting(delayed(INITIALISED + "\n"))
    assert all(wait(launch) for launch in range(1000, 3000))


def _waiting(code):
    """Return for each place whether warps may wait there, as a function of the launch."""
    spread, mix = map(int, re.search(r"%assay_a, (\d+), \d+;.*mul\.lo\.u32 %assay_a, %assay_a, (\d+);", code).groups())
    added = [int(n) for n in re.findall(r"mad\.lo\.u32 %assay_a, %assay_a, \d+, (\d+);", code)]
    limits = [int(n) for n in re.findall(r"setp\.le\.and\.u32 %assay_p, %assay_a, (\d+),", code)]

    def wait(launch, number, limit):
        a = (launch * spread + number) % 2**32
        return (a ^ a >> 15) * mix % 2**32 <= limit

    return [partial(wait, number=number, limit=limit) for number, limit in zip(added, limits, strict=True)]


@pytest.mark.slow
@has_nvrtc
@pytest.mark.skipif(host.tool("ptxas") is None or host.tool("nvdisasm") is None, reason="no ptxas or nvdisasm")
@pytest.mark.parametrize("name", NVRTC)
def test_it_is_assembled_and_waits_before_each_access(name, tmp_path):
    plain = by_nvrtc(name)
    changed = delayed(plain)
    (tmp_path / "k.ptx").write_text(changed)
    target = architecture(plain)
    subprocess.run([host.tool("ptxas"), f"-arch={target}", "k.ptx", "-o", "k.cubin"], cwd=tmp_path, check=True)
    code = subprocess.run([host.tool("nvdisasm"), "k.cubin"], cwd=tmp_path, check=True, capture_output=True, text=True)
    places = len(WAIT.findall(changed))
    assert places and code.stdout.count("NANOSLEEP") >= places
