"""machine: proofs hold on every target, probes call their kernels rightly, crashes are records, models are kept."""

import json
import re
from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import host
from assay.cli import machine as cli
from assay.errors import AssayError, UsageError
from assay.isa import ptx, sass
from assay.machine import cpu, gpu, model
from assay.machine.evidence import MachineEvidence
from assay.machine.lab import ProofFailed
from assay.machine.probe import Measured
from assay.machine.probes import probes
from assay.machine.proof import Proof
from assay.machine.verb import Options, machine
from assay.record import Status
from assay.target import Target

TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_100")
can_build = pytest.mark.skipif(
    host.tool("nvdisasm") is None or not host.has("cuda.bindings") or host.cuda_include() is None,
    reason="no nvdisasm, NVRTC or CUDA headers here",
)


# ---- proofs


@can_build
@pytest.mark.slow
@pytest.mark.parametrize("target", [pytest.param(t, marks=[] if t == "sm_90a" else pytest.mark.whole) for t in TARGETS])
def test_every_probe_proves_its_code(target):
    records = list(machine(prove=target))
    assert [r for r in records if r.status is Status.FAIL] == []
    skipped = {r.kernel for r in records if r.status is Status.SKIPPED}
    wgmma = {f"machine/tensor.wgmma.{d}" for d in ("fp16", "bf16", "tf32", "fp8", "int8")} | {"machine/clock.wgmma"}
    expected = {"sm_90a": {"machine/tensor.mma.fp8"}, "sm_89": wgmma}.get(target, wgmma | {"machine/tensor.mma.fp8"})
    assert skipped == expected
    for record in records:
        if record.status is Status.COMPILED:
            assert record.evidence["proof"]["instances"]
            assert all(a["text_hash"] for a in record.artifacts)


@can_build
def test_a_proof_that_fails_shows_the_lines():
    """The same code, asked for what it is not: other counts, another width, fewer other instructions."""
    probe = next(p for p in probes() if p.key == "dram.read")
    target = Target("sm_90a")
    for wrong in (Proof({"LDG.E.128*": 5}), Proof({"LDG.E.64*": 4}), Proof({"LDG.E.128*": 4}, others=1)):
        finding = replace(probe, instances={"read<4>": wrong}).prove("read<4>", target)
        assert not finding.held
        assert finding.lines
        assert all(re.match(r"/\*[0-9a-f]{4}\*/ \S|…", line) for line in finding.lines)
    chased = next(p for p in probes() if p.key == "latency.l2")
    assert chased.prove("chase<2>", target).held
    assert not replace(probe, instances={"read<4>": Proof({"LDG*": 4}, chain="LDG*")}).prove("read<4>", target).held


def _function(*lines):
    listing = "\t.section\t.text.f\n.L_0:\n" + "".join(
        f"        /*{i * 16:04x}*/    {line} ;\n" for i, line in enumerate((*lines, "@P0 BRA `(.L_0)", "EXIT"))
    )
    return sass.read(listing)["f"]


def test_a_spill_fails_any_proof():
    finding = Proof({"FFMA": 1}).check(_function("FFMA R0, R0, R1, R2", "STL [R1], R0"))
    assert not finding.held
    assert "spills" in finding.says
    assert "STL" in finding.lines[0]


def test_memory_the_proof_does_not_name_fails_it():
    assert not Proof({"FFMA": 1}).check(_function("FFMA R0, R0, R1, R2", "LDG.E R3, desc[UR4][R4.64]")).held
    assert Proof({"FFMA": 1}).check(_function("FFMA R0, R0, R1, R2", "LDC R3, c[0x0][0x210]")).held


def test_a_chain_must_be_one():
    def loads(*pairs):
        return _function(*(f"LDG.E.64 {a}, desc[UR4][{b}.64]" for a, b in pairs))

    chain = Proof({"LDG.E.64": 2}, chain="LDG.E.64")
    assert chain.check(loads(("R2", "R4"), ("R4", "R2"))).held
    assert not chain.check(loads(("R2", "R4"), ("R4", "R6"))).held
    assert not chain.check(loads(("R2", "R2"), ("R4", "R4"))).held


def test_an_empty_kernel_is_empty():
    exits = sass.read("\t.section\t.text.f\n        /*0000*/   EXIT ;\n")["f"]
    assert Proof(empty=True).check(exits).held
    assert not Proof(empty=True).check(_function("STG.E desc[UR4][R2.64], R0")).held


# ---- probes call their kernels with what these take


class _Recorder:
    """Stands in for the GPU: every launch is held against the parameters in the PTX of the very instance."""

    sms, l2, memory = 132, 60 << 20, 140 << 30
    target = Target("sm_90a")

    def __init__(self):
        import torch

        self.sink, self.calls = torch.zeros(4, dtype=torch.int32), 0

    def floats(self, bytes_):
        import torch

        return torch.zeros(4)

    def kernel(self, probe, name):
        artifact = probe.build(name, self.target)
        function = ptx.read(artifact.ptx.decode()).function(artifact.symbol)
        takes, reach = [p.type for p in function.params], function.directives.get("maxntid")

        def call(grid, block, *arguments, shared=0):
            self.calls += 1
            assert [_kind(a) for a in arguments] == takes, name
            assert 0 < block <= 1024
            assert grid > 0
            assert shared <= 227 << 10
            if reach and "wgmma" in name:
                assert block == reach[0]

        call.artifact = artifact
        call.resident = lambda threads, blocks: threads * blocks
        return call

    def time(self, go, launches=11, before=None, warm_up=3):
        import torch

        for _ in range(warm_up + launches):
            go(torch.zeros(2, dtype=torch.int64))
        return [1e-3] * launches, [1980.0] * launches

    def rounds(self, go, seconds=3e-3, first=64):
        import torch

        go(first, torch.zeros(2, dtype=torch.int64))
        return first

    def per_clock(self, value, clocks):
        return {"per_clock_sm": 1.0}


def _kind(argument):
    if hasattr(argument, "data_ptr") or type(argument) is int:
        return "u64"
    return {"uint32": "u32", "float32": "f32"}[argument.dtype.name]


@can_build
@pytest.mark.whole
def test_every_launch_fits_its_kernel(monkeypatch):
    import torch

    from assay.machine.probes import clock, latency, tensor

    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *a, device=None, **k: zeros(*a, **k))
    monkeypatch.setattr(latency, "ring", lambda bytes_, stride: (zeros(1), zeros(1)))
    monkeypatch.setattr(tensor, "random", lambda dtype, bytes_: zeros(1))
    monkeypatch.setattr(clock, "SECONDS", 0.01)
    for probe in probes():
        lab = _Recorder()
        if probe.family == "launch" or not probe.fits(lab.target):
            continue
        measured = probe.measure(lab, probe)
        assert lab.calls
        assert measured.samples
        json.dumps(measured.table)
        if "best" in measured.more:
            assert measured.table[0].keys() >= measured.more["best"].keys()


def test_rings_are_one_cycle():
    made = cpu.latency.ring(1 << 14, 128)
    at, seen = 0, set()
    for _ in range((1 << 14) // 128):
        seen.add(at)
        at = int(made[at])
    assert at == 0
    assert seen == set(range(0, (1 << 14) // 8, 16))


# ---- the child


CHILD = """
    import os, time
    from assay.worker.fresh import serve

    def answer(question, tick):
        key = question.get("probe")
        if key is None: return {"facts": {"sms": 1}}
        if key == "crash": os.abort()
        if key == "hang": time.sleep(60)
        return {"measured": {"samples": [1.0]}, "lost": key == "lost"}

    serve(answer)
"""


def test_a_probe_that_kills_its_process_costs_one_record(write, tmp_path, monkeypatch):
    write("probing.py", CHILD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    keys = ["a", "crash", "b", "lost", "hang", "c"]
    found = [news for news in gpu.outcomes(keys, 3, "probing") if not isinstance(news, gpu.Opened)]
    assert [k for k, _ in found] == keys
    bad = {k: o.why for k, o in found if not o.measured}
    assert bad.keys() == {"crash", "hang"}
    assert "SIGABRT" in bad["crash"]
    assert "3 s" in bad["hang"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("from assay.worker.fresh import serve\nserve(lambda *_: 1 / 0)", "ZeroDivisionError"),
        ("import sys\nsys.exit('no such device')", "no such device"),
    ],
)
def test_a_child_that_cannot_open_the_device_fails_all_at_once(code, words, write, tmp_path, monkeypatch):
    write("probing.py", code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = list(gpu.outcomes(["a", "b"], 30, "probing"))
    assert [k for k, _ in found] == ["a", "b"]
    assert all(words in o.why for _, o in found)


# ---- models


def test_published_models_are_marked_and_named():
    shipped = model.shipped()
    assert {m.device for m in shipped} >= {"NVIDIA H200", "NVIDIA L40S", "NVIDIA B200", "NVIDIA GeForce RTX 4090"}
    for one in shipped:
        assert one.source == "published"
        assert not one.measured
        assert one.stream() > 1e11
        assert one.peak("fp32") > 1e12
        assert one.peak("bf16", tensor=True) > one.peak("fp32")
        assert one.facts.keys() >= {"sms", "boost_mhz", "l2_bytes", "memory_bytes"}
        assert all(f.where and f.published is not None for f in one.figures.values())


def test_published_peaks_follow_from_clock_and_width():
    """What a datasheet says must be what its multiprocessors can do at its clock: guards against a slipped digit."""
    for one in model.shipped():
        per_clock = one.peak("fp32") / (one.facts["sms"] * one.facts["boost_mhz"] * 1e6)
        assert per_clock == pytest.approx(128 if "A100" in one.device else 256, rel=0.02), one.device


@pytest.mark.parametrize("name", ["NVIDIA H200", "h200", "H200 SXM"])
def test_published_by_any_of_its_names(name):
    assert model.published(name).device == "NVIDIA H200"
    assert model.published("NVIDIA Nothing 3000") is None


def _measured(**figures):
    made = {k: model.Figure(v, "B/s", v * 0.9, v * 1.1) for k, v in figures.items()}
    return model.Model("NVIDIA H200", "measured", "r", "t", made)


def test_measured_goes_before_published(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    assert model.best("NVIDIA H200").source == "published"
    assert model.kept("NVIDIA H200") is None
    file = model.kept_file("NVIDIA H200")
    file.parent.mkdir(parents=True)
    evidence = {"model": _measured(**{"dram.read": 4e12, "dram.copy": 3e12}).to_dict()}
    record = {"verb": "machine", "evidence": evidence}
    file.write_text(json.dumps({"records": [{"verb": "machine", "evidence": {}}, record]}))
    best = model.best("NVIDIA H200")
    assert best.measured
    assert best.value("dram.read") == 4e12
    assert best.stream() == pytest.approx(4.4e12), "the fastest sample of the fastest kind"
    assert best.peak("fp32") is None
    file.write_text("{}")
    with pytest.raises(UsageError, match="no machine model"):
        model.kept("NVIDIA H200")


figures = st.builds(
    model.Figure,
    st.floats(1e-9, 1e18),
    st.sampled_from(["B/s", "cycles"]),
    st.none() | st.floats(0, 1),
    st.none(),
    st.none() | st.floats(1, 3000),
    st.none() | st.floats(1, 1e9) | st.tuples(st.floats(1, 2), st.floats(2, 3)),
    st.text(),
)


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1), figures))
def test_a_model_survives_json(made):
    one = model.Model("d", "measured", "r", "t", made, {"sms": 3})
    assert model.Model.from_dict(json.loads(json.dumps(one.to_dict()))) == one


@given(st.text())
def test_a_slug_is_a_file_name(name):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", model.slug(name))


# ---- the CPU


AARCH64 = """
define float @f(i64 %n, <4 x float> %b, <4 x float> %c) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
PHIS
BODY
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  SUM
  %r = extractelement <4 x float> %LAST, i32 0
  ret float %r
}
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
"""


def test_the_proof_reads_arm_code_too(monkeypatch):
    """Real code of LLVM for aarch64, whatever this machine is."""
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    monkeypatch.setattr(cpu.fma, "vector_bits", lambda: 128)
    monkeypatch.setattr(cpu.fma, "chains", lambda: 8)
    phis, body, total, last = [], [], [], "x0.4"
    for k in range(8):
        phis.append(f"  %x{k} = phi <4 x float> [ %b, %entry ], [ %x{k}.4, %loop ]")
    for turn in range(4):
        for k in range(8):
            before = f"x{k}" if turn == 0 else f"x{k}.{turn}"
            call = f"call <4 x float> @llvm.fma.v4f32(<4 x float> %b, <4 x float> %c, <4 x float> %{before})"
            body.append(f"  %x{k}.{turn + 1} = {call}")
    for k in range(1, 8):
        total.append(f"  %s{k} = fadd <4 x float> %{last}, %x{k}.4")
        last = f"s{k}"
    parts = {"PHIS": phis, "BODY": body, "SUM": total, "LAST": [last]}
    text = AARCH64
    for name, lines in parts.items():
        text = text.replace(name, "\n".join(lines))
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(cpu="neoverse-n1", opt=3)
    assembly = target.emit_assembly(llvm.parse_assembly(text))
    assert cpu.fma.prove(assembly, 32).held
    with pytest.raises(AssayError, match="not 32"):
        cpu.fma.prove(assembly.replace("fmla", "fmls", 1), 32)


def test_caches_are_known():
    sizes = cpu.cores.caches()
    assert sizes[1] >= 8 << 10
    assert list(sizes.values()) == sorted(sizes.values())


@pytest.mark.slow
@pytest.mark.skipif(not host.has("numba"), reason="no numba here")
def test_the_cpu_is_measured_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    monkeypatch.setattr(cpu.cores, "array_bytes", lambda: 64 << 20)
    cpu.stream.arrays.cache_clear()
    records = list(machine(device="cpu"))
    cpu.stream.arrays.cache_clear()
    assert [r.reason for r in records if r.status is Status.FAIL] == []
    assert {r.kernel for r in records if r.status is Status.SKIPPED} <= {"machine/latency.l3"}
    kept = model.kept("cpu")
    assert kept.measured
    assert kept == MachineEvidence.of(records[-1]).model
    # Physics, not chance: a cache answers sooner than memory, twice the width halves the rate.
    assert kept.value("latency.l1") < kept.value("latency.dram")
    assert kept.peak("fp32") > kept.peak("fp64")
    assert 1e8 < kept.stream() < 1e13
    vectors = next(r for r in records if r.kernel == "machine/vector.fp32")
    assert vectors.evidence["proof"]["held"]
    for record in (r for r in records[:-1] if r.status is Status.PASS):
        assert median(record.evidence["samples"]) == next(iter(record.evidence["figures"].values()))["value"]


def test_one_family_is_not_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    probe = replace(cpu.PROBES[0], measure=_fails)
    monkeypatch.setattr(cpu, "PROBES", (probe,))
    records = list(machine(device="cpu", only="latency"))
    assert [str(r.status) for r in records] == ["fail", "fail"]
    assert "broken" in records[0].reason
    assert not list(tmp_path.rglob("*.json"))


def _fails():
    raise AssayError("broken")


def test_a_cache_the_cpu_does_not_have_is_skipped(monkeypatch):
    monkeypatch.setattr(cpu.cores, "caches", lambda: {1: 32 << 10, 2: 1 << 20})
    first, last = machine(device="cpu", only="latency.l3")
    assert first.status is Status.SKIPPED
    assert last.status is Status.PASS


def test_a_failed_run_does_not_replace_a_kept_model(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    good = replace(cpu.PROBES[0], measure=lambda: Measured([1.0]))
    monkeypatch.setattr(cpu, "PROBES", (good,))
    list(machine(device="cpu"))
    monkeypatch.setattr(cpu, "PROBES", (replace(good, measure=lambda: Measured([2.0])), replace(good, measure=_fails)))
    list(machine(device="cpu"))
    assert model.kept("cpu").value(good.key) == 1.0
    monkeypatch.setattr(cpu, "PROBES", (replace(good, measure=lambda: Measured([3.0])),))
    list(machine(device="cpu"))
    assert model.kept("cpu").value(good.key) == 3.0


def test_wrong_use_says_what_there_is():
    with pytest.raises(UsageError, match="family"):
        list(machine(device="cpu", only="nonsense"))
    with pytest.raises(UsageError, match="no device"):
        list(machine(Options(device="tpu")))


# ---- the screen


def test_a_published_range_is_shown_as_one():
    assert cli.published(model.Figure(250.0, "cycles", published=(219.0, 281.0))) == "219–281\u00a0cycles"
    assert cli.published(model.Figure(250.0, "cycles")) == ""


# ---- on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("family", ["launch", "latency", "patterns", "atomics"])
def test_a_family_on_the_gpu(family):
    records = list(machine(device="cuda", only=family))
    assert [r.reason for r in records if r.status is Status.FAIL] == []
    assert all(r.evidence["figures"] for r in records[:-1] if r.status is Status.PASS)


@pytest.mark.gpu
def test_latencies_rise_with_distance():
    (*_, last) = machine(device="cuda", only="latency")
    one = model.Model.from_dict(last.evidence["model"])
    ladder = [one.value(f"latency.{level}") for level in ("shared", "l1", "l2", "dram")]
    assert ladder == sorted(ladder)


@pytest.mark.gpu
def test_a_proof_that_fails_is_never_launched():
    from assay.machine.lab import Lab

    probe = next(p for p in probes() if p.key == "dram.read")
    with pytest.raises(ProofFailed):
        Lab().kernel(replace(probe, instances={"read<4>": Proof({"LDG.E.128*": 5})}), "read<4>")


@pytest.mark.gpu
def test_the_tensor_peak_is_below_what_the_chip_can():
    (*_, last) = machine(device="cuda", only="tensor.wgmma.bf16")
    one = model.Model.from_dict(last.evidence["model"])
    if figure := one.figures.get("tensor.wgmma.bf16"):
        assert figure.value <= 4096 * one.facts["sms"] * figure.clock_mhz * 1e6 * 1.01
