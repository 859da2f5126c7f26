"""The corpus is whole, what this machine can run is caught, and a broken detector is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.backends import Level, backend
from assay.check import Options, judge
from assay.check.job import Job
from assay.check.verb import run as check_run
from assay.dtype import dtype
from assay.errors import SourceError, UsageError
from assay.record import Record, Status
from assay.sanitize import TOOLS, parse, target
from assay.sanitize.process import command, read
from assay.selftest import entries, selftest
from assay.selftest.entry import DETECTORS
from assay.worker.fresh import run_once
from assay.workload import Workload

ENTRIES = entries()
HERE = [e.name for e in ENTRIES if e.needs in ("", "no gpu") and e.verb == "check"]
QUICK = [
    "cached_output",
    "crashes",
    "does_nothing",
    "exits_quietly",
    "fake_verdict",
    "forks",
    "mutated_input",
    "remembers_address",
    "returned_tensor",
    "scratch_not_zeroed",
]


def told(records: list[Record]) -> dict[str, str]:
    return {r.kernel: f"{r.status}: {r.reason}" for r in records if r.status is not Status.PASS}


def test_corpus_is_large_and_runs_mostly_without_a_gpu() -> None:
    assert len(ENTRIES) >= 115
    assert len(HERE) >= 100
    unused = set(DETECTORS) - {d for e in ENTRIES for d in e.detector.split(" or ")}
    assert not unused, "every detector has an entry"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_entry_is_complete(entry) -> None:
    kernels = entry.kernels()
    assert entry.summary.endswith(".") and set(entry.detector.split(" or ")) <= set(DETECTORS)
    (wrong, op), (fixed, other) = kernels["wrong"], kernels["fixed"]
    assert op.name == other.name and wrong.address.backend == fixed.address.backend
    assert entry.dtype in op.dtypes and entry.tool in TOOLS
    if entry.workload:
        assert str(Workload.of(op, entry.workload).dtype) == entry.dtype
    if wrong.address.backend in ("cuda", "cupy"):
        assert entry.needs


@pytest.mark.slow
def test_quick_entries_are_caught_by_the_detector_they_name() -> None:
    records = list(selftest(QUICK))
    assert sorted(r.kernel for r in records) == sorted(QUICK)
    assert told(records) == {}
    for r in records:
        assert r.verb == "selftest" and r.evidence["caught_by"] == r.evidence["detector"]
        assert r.evidence["twin"] == "pass" and r.evidence["finding"] and r.evidence["entry"]
        assert r.replay == f"assay selftest {r.kernel}" and r.run == records[0].run


SAMPLE = [n for n in HERE if n not in QUICK and not n.startswith("attention")][5::72]
"""Attention takes minutes in an interpreter; tests/library/test_attention.py has it smaller."""


@pytest.mark.slow
@pytest.mark.parametrize("share", range(2))
def test_a_sample_of_the_corpus_is_caught(share: int) -> None:
    records = list(selftest(SAMPLE[share::2]))
    assert told(records) == {} and len(records) == len(SAMPLE[share::2])


@pytest.mark.whole
@pytest.mark.parametrize("share", range(12))
def test_everything_this_machine_can_run_is_caught(share: int) -> None:
    """In shares, so that several processes can take them."""
    names = [n for n in HERE if n not in QUICK][share::12]
    records = list(selftest(names))
    missing = {e.name for e in ENTRIES if any(_missing(k) for k, _ in e.kernels().values())}
    assert {r.kernel for r in records} == set(names)
    assert {k: v for k, v in told(records).items() if k not in missing} == {}


@pytest.mark.slow
@pytest.mark.skipif(backend("cuda").availability().level is Level.MISSING, reason="no NVRTC")
def test_cuda_entries_build() -> None:
    jobs = []
    for entry in ENTRIES:
        for kernel, op in entry.kernels().values():
            if kernel.address.backend == "cuda":
                jobs.append(Job(kernel, op, dtype(entry.dtype), Workload.of(op, "").replace(dtype=dtype(entry.dtype))))
    if backend("cuda").availability().level is Level.COMPILE:
        records = list(check_run(jobs, Options()))
        refused = [Path(r.source["file"]).stem for r in records if r.status is not Status.COMPILED]
        assert refused == ["too_many_threads"]  # no GPU is needed to know that


def _missing(kernel) -> bool:
    return backend(kernel.address.backend).availability().level is Level.MISSING


def test_a_blind_judge_is_noticed(monkeypatch) -> None:
    monkeypatch.setattr("assay.check.case.judge", lambda *_, **__: judge.Judgement(None, (), {}))
    (record,) = selftest(["fake_verdict"])
    assert record.status is Status.FAIL
    assert "was not caught" in record.reason and record.evidence["twin"] == "pass"


def test_a_judge_who_rejects_everything_is_noticed(monkeypatch) -> None:
    rejected = judge.Judgement(judge.Finding("values", "no"), (), {})
    monkeypatch.setattr("assay.check.case.judge", lambda *_, **__: rejected)
    (record,) = selftest(["fake_verdict"])
    assert record.status is Status.FAIL and record.evidence["twin"] == "fail"
    assert "twin did not pass" in record.reason


def test_the_wrong_detector_is_noticed(monkeypatch) -> None:
    monkeypatch.setattr("assay.check.leftovers.kept", lambda result, _: result.new_zeros(result.numel(), dtype=bool))
    (record,) = selftest(["does_nothing"])
    assert record.status is Status.FAIL and "not by unwritten" in record.reason


def test_entries_that_need_a_gpu_say_so(monkeypatch) -> None:
    monkeypatch.setattr("assay.host.runs_on_gpu", lambda: False)
    for record in selftest(["wrong_stream", "race_unnoticed"]):
        assert record.status is Status.SKIPPED
        assert "GPU" in record.reason and "NVIDIA" in record.reason


def test_unknown_and_incomplete_entries(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="sleeps"):
        entries(["sleep"])
    (tmp_path / "a.py").write_text('"""Wrong."""\nDETECTOR = "luck"\n')
    with pytest.raises(SourceError, match="DETECTOR"):
        entries(folder=tmp_path)
    (tmp_path / "a.py").write_text('DETECTOR = "values"\n')
    with pytest.raises(SourceError, match="docstring"):
        entries(folder=tmp_path)


GOLDEN = Path(__file__).parents[1] / "golden" / "compute-sanitizer"
"""Logs of two corpus entries' wrong kernels on an H200 (CUDA 13.0); of memcheck's 24 reports the first and the last."""

# Forms that other versions and tools print, after NVIDIA's user guide.
MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at void silu<(bool)0>(const float *, float *, long long)+0x70 in overread_unnoticed.cu:7
=========     by thread (0,0,0) in block (3,0,0)
=========     Access to 0x7f2c4a000ffc is out of bounds
=========     and is 1,093 bytes after the nearest allocation at 0x7f2c4a000000 of size 4,000 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8ae3] in python
=========
========= Invalid __global__ read of size 4 bytes
=========     at void silu<(bool)0>(const float *, float *, long long)+0x70 in overread_unnoticed.cu:7
=========     by thread (1,0,0) in block (3,0,0)
=========     Access to 0x7f2c4a001000 is out of bounds
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to x.
=========
========= ERROR SUMMARY: 3 errors
"""
OLDER = """\
========= COMPUTE-SANITIZER
a kernel's own line
========= Invalid __shared__ write of size 16 bytes
=========     at 0xd80 in kernels/attention.cu:162:void add_bias<(bool)1, __half>(T2 *, int)
=========     by thread (63,0,0) in block (506,0,0)
=========     Address 0x400100001 is misaligned
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Warning: Race reported between Read access at mean_var(const float *, float *)+0x2f0 in race.cu:8
=========     and Write access at mean_var(const float *, float *)+0x5a0 in race.cu:5 [128 hazards]
=========     and Write access at mean_var(const float *, float *)+0x5c0 in race.cu:5 [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""
BROKEN_OFF = """\
========= Error: Race reported between Write access at
=========     reduce(float *)+0xb0 in reduce.cu:28
=========     and Read access at
=========     reduce(float *)+0xc0 in reduce.cu:30
=========     [1024 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INITCHECK = """\
========= Uninitialized __global__ memory read of size 4 bytes
=========     at add(float *, float *)+0x40
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f0000000000
========= ERROR SUMMARY: 1 error
"""
SYNCCHECK = """\
========= Barrier error detected. Divergent thread(s) in block.
=========     at divergent(int *)+0x110 in sync.cu:9
=========     by thread (32,0,0) in block (0,0,0)
========= ERROR SUMMARY: 1 error
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


def test_a_real_memcheck_log_is_read() -> None:
    found = parse((GOLDEN / "memcheck.txt").read_text())
    (p,) = found.problems
    assert (p.tool, p.kind, p.kernel) == ("memcheck", "Invalid __global__ read", "silu<(bool)0>")
    assert (p.where, p.bytes, p.beyond) == ("overread_unnoticed.cu:6", 4, 93)
    assert found.total == 24


def test_a_real_racecheck_log_is_read() -> None:
    found = parse((GOLDEN / "racecheck.txt").read_text())
    (p,) = found.problems
    assert (p.tool, p.kind, p.kernel) == ("racecheck", "Race between write and read", "block_sum")
    assert (p.where, p.count, found.total) == ("race_unnoticed.cu:5", 204, 1)


def test_memory_errors_are_read() -> None:
    found = parse(MEMCHECK)
    (p,) = found.problems
    assert (p.tool, p.kind, p.kernel, p.where) == (
        "memcheck",
        "Invalid __global__ read",
        "silu<(bool)0>",
        "overread_unnoticed.cu:7",
    )
    assert (p.access, p.bytes, p.beyond, p.count) == ("read", 4, 1093, 2)
    assert p.address == "0x7f2c4a000ffc" and found.total == 3
    assert "1093 bytes from the nearest allocation" in str(p)


def test_the_older_form_is_read() -> None:
    (p,) = parse(OLDER).problems
    assert (p.kind, p.kernel, p.where) == (
        "Invalid __shared__ write",
        "add_bias<(bool)1, __half>",
        "kernels/attention.cu:162",
    )
    assert p.bytes == 16


@pytest.mark.parametrize(
    "text, between, where, count",
    [(RACECHECK, "read and write", "race.cu:8", 132), (BROKEN_OFF, "write and read", "reduce.cu:28", 1024)],
)
def test_races_are_read(text: str, between: str, where: str, count: int) -> None:
    (p,) = parse(text).problems
    assert p.tool == "racecheck" and p.kind == f"Race between {between}"
    assert p.where == where and p.count == count


def test_other_tools_are_read() -> None:
    (p,) = parse(INITCHECK).problems
    assert (p.tool, p.kernel, p.bytes, p.where) == ("initcheck", "add", 4, "")
    (p,) = parse(SYNCCHECK).problems
    assert (p.tool, p.kernel, p.kind) == (
        "synccheck",
        "divergent",
        "Barrier error detected. Divergent thread(s) in block.",
    )


def test_no_verdict_without_an_end() -> None:
    assert read("memcheck", 0, CLEAN, "", 9).clean
    assert read("memcheck", 86, MEMCHECK, "", 9).problems
    for code, log in ((None, ""), (0, ""), (1, CLEAN), (86, CLEAN), (0, CLEAN.replace("0 err", "2 err"))):
        report = read("memcheck", code, log, "", 9)
        assert report.trouble and not report.clean
    assert "supported" in read("memcheck", 1, "========= Device not supported. Please refer\n", "", 9).trouble


def test_the_watched_process_runs_a_kernel(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("assay.host.tool", lambda name: Path("/bin") / name)
    line = command("racecheck", "log")
    assert line[0].endswith("compute-sanitizer") and line[line.index("--tool") + 1] == "racecheck"
    with pytest.raises(UsageError, match="memcheck"):
        command("guesswork", "log")
    ended = tmp_path / "ended"
    shell = ["sh", "-c", f'"$@"; echo $? > {ended}', "watched"]
    axpy, its_op = entries(["inplace_order"])[0].kernels()["fixed"]
    request = target.request(axpy, Workload.of(its_op, "n=7,dtype=fp32,offset=1"), {})
    assert run_once(request, 300, {}, shell) == (0, "")
    assert ended.read_text() == "0\n", "the command in front saw the kernel's process end well"
    assert run_once(request, 300, {}, ["sleep", "200"], stopped=lambda: True)[0] is None
    out = target.outputs(request)["out"].cpu()
    from assay.check.oracle import oracle
    from assay.inputs import generate

    w = Workload.of(its_op, "n=7,dtype=fp32,offset=1")
    assert (out - oracle(w, generate(w)).exact["out"]).abs().max() < 1e-5
