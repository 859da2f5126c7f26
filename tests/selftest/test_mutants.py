"""Small changes to kernels that are right: they are what they say, plain check kills them, equal ones are proven so."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest

from assay.backends import Availability, Level, backend
from assay.catalog.select import everything, select
from assay.check import judge
from assay.errors import SourceError, UsageError
from assay.record import Record, Status
from assay.selftest import entries
from assay.selftest.mutants import MutantEvidence, Options, Outcome, mutants, plan, run, score, summary
from assay.selftest.mutants.equivalent import Prover, workloads
from assay.worker import Pool

ROOT = Path(__file__).parents[2]
PYTHON = [c for c in everything() if c[0].address.backend in ("triton", "numba", "njit") and not c[0].needs]


@pytest.mark.slow
def test_limits_samples_and_slices_choose_the_same_mutants_every_time():
    whole, untried = plan(["gelu", "sum"], Options())
    names = [m.name for m in whole]
    if backend("cuda").availability().level is Level.COMPILE:
        assert [k.name for k, _ in untried] == ["gelu/cuda", "sum/cuda"] and "not tried" in untried[0][1]
    few = Counter(m.kernel.name for m in plan(["gelu", "sum"], Options(limit=5))[0])
    assert set(few.values()) <= set(range(1, 6)) and few["gelu/triton"] == 5
    drawn = [m.name for m in plan(["gelu", "sum"], Options(sample=9, seed=4))[0]]
    assert len(drawn) == 9 and drawn == [m.name for m in plan(["gelu", "sum"], Options(sample=9, seed=4))[0]]
    assert drawn == [n for n in names if n in drawn] != [m.name for m in plan(["gelu", "sum"], Options(sample=9))[0]]
    parts = [m.name for i in (1, 2, 3) for m in plan(["gelu", "sum"], Options(part=(i, 3)))[0]]
    assert sorted(parts) == sorted(names) and len(set(names)) == len(names)
    only = plan(["gelu"], Options(operators=("mask",)))[0]
    assert only and {m.operator for m in only} == {"mask"}
    (one,) = plan([names[3]], Options())[0]
    assert one.name == names[3]
    with pytest.raises(UsageError, match="no mutant"):
        plan(["gelu/njit@1:1:mask:0"], Options())


def test_the_library_has_mutants_enough_for_a_score():
    counts = [
        len(mutants(k, op)) for k, op in PYTHON if k.address.op in ("gelu", "sum", "softmax", "transpose", "silu")
    ]
    assert sum(n >= 5 for n in counts) >= 10 and sum(counts) >= 400


USERS = """\
from numba import njit

from assay import Axis, Tensor, kernel, op
from assay.backends.njit import arrays, load, store


@op(axes={"n": Axis(max=4096)}, inputs={"x": Tensor("n", specials=())}, outputs={"out": Tensor("n")}, dtypes=("fp32",),
    magnitude=lambda x: x.abs() + 1)
def third_of_it(x):
    return x / 3 + 1


def loop(x, y):
    for i in range(x.size):
        if i >= 0:
            store(y, i, load(x, i) / 3.0 + 1.0)


_loop = njit(loop)


@kernel("third_of_it")
def third_of_it_by_njit(x, *, out):
    _loop(*arrays(x, out))
"""


@pytest.mark.slow
def test_mutants_of_a_users_kernel_are_killed_or_proven_equivalent(write):
    file = write("mine.py", USERS)
    planned, untried = plan([file], Options(operators=("guard", "boundary", "term")))
    assert not untried and len(planned) == 4
    records = {r.kernel: r for r in run(planned, untried, Options(workloads=60))}
    assert set(records) == {m.name for m in planned}
    same = [m for m in planned if MutantEvidence.of(records[m.name]).outcome is Outcome.EQUIVALENT]
    # Every i is at least 0, so it makes no difference whether that is asked; `i > 0` is another matter.
    assert [(m.operator, m.after) for m in same] == [("guard", "True")]
    for m in planned:
        r, e = records[m.name], MutantEvidence.of(records[m.name])
        assert r.status is Status.PASS and r.verb == "selftest" and r.replay.startswith("assay selftest mutants ")
        assert (e.operator, e.line, e.before, e.after) == (m.operator, m.line, m.before, m.after)
        if m in same:
            assert e.compared >= 50 and "bit-equal" in e.proof
        else:
            assert e.outcome is Outcome.KILLED and e.detector and e.found_at and not e.proof
            assert e.workloads >= 1 and e.seconds > 0 and r.workload == e.found_at
    told = summary(list(records.values()))
    assert told["total"]["score"] == 1 and told["total"]["equivalent"] == len(same) and not told["survivors"]


@pytest.mark.slow
def test_a_blind_judge_leaves_survivors(monkeypatch, write):
    for where in ("assay.check.case.judge", "assay.check.slices.judge_maximum"):
        monkeypatch.setattr(where, lambda *_, **__: judge.Judgement(None, (), {}))
    planned, _ = plan([write("mine.py", USERS)], Options(operators=("float",)))
    records = list(run(planned[:1], [], Options(workloads=20)))
    (record,) = records
    assert record.status is Status.FAIL and record.evidence["outcome"] == Outcome.SURVIVED
    assert record.evidence["differs_at"] and "differ" in record.evidence["proof"]
    assert score([MutantEvidence.of(record)]).share == 0


DEAD = """\
import triton
import triton.language as tl

from assay import kernel


@triton.jit
def _silu(x, y, n, BLOCK: tl.constexpr):
    unused = 3 * tl.program_id(0)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(y + i, (v / (1 + tl.exp(-v))).to(y.dtype.element_ty), mask=i < n)


@kernel("silu", dtypes=["fp32"])
def silu(x, *, out, BLOCK=1024):
    _silu[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK)
"""


@pytest.mark.slow
@pytest.mark.skipif(backend("triton").availability().level is Level.MISSING, reason="no Triton")
def test_a_change_in_dead_code_gives_the_same_machine_code(write, tmp_path):
    (choice,) = select([write("dead.py", DEAD)])
    found = mutants(*choice)
    dead = next(m for m in found if m.operator == "constant" and m.before == "3")
    alive = next(m for m in found if m.operator == "constant" and m.before == "1")
    with Pool() as pool:
        prover = Prover(pool, 3, 60)
        proofs = [prover.prove(m, *m.write(tmp_path / str(i))) for i, m in enumerate((dead, alive))]
    assert proofs[0].holds and "machine code" in proofs[0].how
    assert not proofs[1].holds and proofs[1].differs_at


BARRIER = """\
template <bool LONG> __global__ void silu(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if constexpr (LONG) __syncthreads();
  if (i < n) y[i] = x[i] / (1 + expf(-x[i]));
}
"""
LAUNCH = """\
from assay import kernel
from assay.backends.cuda import Source

source = Source("silu.cu")


@kernel("silu", dtypes=["fp32"])
def silu(x, *, out):
    n = x.numel()
    source[f"silu<{str(n > LONGEST).lower()}>"]((n + 255) // 256, 256, x, out, n)
"""


@pytest.mark.skipif(backend("cuda").availability().level is Level.MISSING, reason="no compiler for CUDA C++")
@pytest.mark.parametrize(("longest", "reached"), [("0", True), ("2**40", False)])
def test_a_barrier_in_code_that_is_never_built_is_not_proven_harmless(write, tmp_path, longest, reached):
    write("silu.cu", BARRIER)
    (choice,) = select([write("own.py", LAUNCH.replace("LONGEST", longest))])
    (barrier,) = [m for m in mutants(*choice) if m.operator == "barrier"]
    with Pool() as pool:
        prover = Prover(pool, 3, 60)
        assert prover._contains(barrier, *barrier.write(tmp_path / "changed")) is reached


def test_a_file_is_changed_only_for_the_kernels_that_launch_it():
    (choice,) = select(["conv2d/cuda:inline_ptx"])  # launched by cuda.py, whose mutants change kernel.cu
    assert not [m for m in mutants(*choice) if m.file.name == "kernel.cu"]


@pytest.mark.slow
def test_reads_and_races_are_never_proven_harmless_by_equal_outputs():
    (choice,) = select(["gelu/triton"])
    found = mutants(*choice)
    assert {m.operator for m in found if m.hidden} >= {"mask", "boundary"}
    (masked,) = [m for m in found if m.operator == "mask" and "tl.load" in m.before]
    assert masked.hidden and not next(m for m in found if m.operator == "float").hidden
    barriers = [m for m in mutants(*select(["sum/numba"])[0]) if m.operator == "barrier"]
    assert len(barriers) == 3 and all(m.hidden for m in barriers)
    layernorm = mutants(*select(["layernorm/triton"])[0])
    assert any(m.hidden and "inside" not in m.before and m.operator == "boundary" for m in layernorm)


def test_indices_of_32_bits_are_changes_for_a_gpu_and_never_proven_harmless(monkeypatch):
    (choice,) = select(["col_scale/triton"])
    assert not [m for m in mutants(*choice) if m.narrows]
    monkeypatch.setattr("assay.host.runs_on_gpu", lambda: True)
    narrowed = [m for m in mutants(*choice) if m.narrows]
    assert narrowed and all("int64" in m.before for m in narrowed)
    gpu = Availability(Level.RUN, "", device="cuda")
    monkeypatch.setattr("assay.selftest.mutants.equivalent.here", lambda kernel: gpu)
    assert {Prover._hidden(m) for m in narrowed} == {"indices past 2³¹"}
    assert Prover._hidden(next(m for m in mutants(*choice) if m.operator == "term")) == ""


def test_compared_workloads_are_many_and_hold_the_sizes_asked_for():
    op = select(["layernorm/njit"])[0][1]
    from assay.dtype import dtype

    drawn = list(workloads(op, dtype("fp32"), 700, (777, 778), budget=1 << 11))
    assert len(drawn) == len({str(w) for w in drawn}) == 700
    assert {777, 778} <= {w.sizes.cols for w in drawn} and {777, 778} <= {w.sizes.rows for w in drawn}
    assert drawn == list(workloads(op, dtype("fp32"), 700, (777, 778), budget=1 << 11))
    assert {w.values for w in drawn} >= {"normal", "special", "offset", "wide", "small"}
    assert all(w.allowed for w in drawn)


def test_real_mutants_are_killed_from_the_command_line(assay, tmp_path):
    out = tmp_path / "records.json"
    kept = tmp_path / "kept"
    kernels = ("silu/njit", "silu/triton", "axpy/numba", "--operator", "float,arithmetic,term,guard,swap,sign")
    done = assay("selftest", "mutants", *kernels, "--sample", "3", "--json", "--out", out, "--keep", kept)
    document = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert json.loads(out.read_text())["records"] == document["records"]
    assert {r["evidence"]["outcome"] for r in document["records"]} <= {"killed", "equivalent"}
    assert len(document["records"]) + len(document["summary"]["stillborn"]) == 3
    assert document["summary"]["total"]["score"] == 1 and document["summary"]["total"]["killed"] >= 2
    assert all(r["evidence"]["dtypes"] == ["fp32", "bf16", "fp16"] for r in document["records"])
    assert len(list(kept.glob("*/mutant_of_*.py"))) == 3


def test_mutants_is_a_reserved_word_and_its_options_are_refused_elsewhere(assay, tmp_path):
    (tmp_path / "mutants.py").write_text('"""Wrong."""\nDETECTOR = "values"\n')
    with pytest.raises(SourceError, match="rename"):
        entries(folder=tmp_path)
    assert "mutants" not in {e.name for e in entries()}
    for arguments, said in (
        (("mutants", "nosuch"), "no op called 'nosuch'"),
        (("mutants", "gelu/torch"), "nothing to change"),
        (("mutants", "gelu", "--slice", "3/2"), "no slice"),
        (("mutants", "gelu", "--operator", "luck"), "no operator called 'luck'"),
        (("sleeps", "--limit", "3"), "No such option: --limit"),
    ):
        done = assay("selftest", *arguments)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, done.stderr


def tool():
    spec = importlib.util.spec_from_file_location("mutants_tables", ROOT / "tools" / "mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_what_the_records_give_and_every_survivor_is_explained():
    tables = tool()
    page = tables.PAGE.read_text()
    assert tables.page(page, ROOT / "results") == page, "run `python tools/mutants.py`"
    assert tables.unexplained(ROOT / "results") == []


def document(*fates: tuple[str, str]) -> dict:
    def one(name: str, outcome: str) -> dict:
        kernel, _, place = name.partition("@")
        evidence = MutantEvidence(
            kernel,
            kernel.partition("/")[2],
            place.split(":")[2],
            before="a | b",
            after="b",
            outcome=Outcome(outcome),
            detector="values",
        )
        made = {"gpu": None, "cpu": "a processor", "time": "2026-01-01T00:00:00Z", "commit": "abc"}
        return Record(
            "selftest", name, "", Status.PASS, "", evidence=evidence.to_dict(), source={"hash": "0"}, provenance=made
        ).to_dict()

    born = [n for n, fate in fates if fate == "stillborn"]
    return {"records": [one(*f) for f in fates if f[0] not in born], "summary": {"stillborn": born}}


def test_slices_are_put_together_and_an_unexplained_survivor_is_named(tmp_path):
    tables = tool()
    mask, less, other = "gelu/triton@1:1:mask:0", "gelu/triton@2:1:boundary:0", "sum/njit@3:1:term:0"
    merged = tables.merge([document((mask, "survived"), (other, "stillborn")), document((less, "killed"))])
    later = tables.merge([merged, document((other, "killed"))])
    assert [r["kernel"] for r in later["records"]] == [mask, less, other] and later["summary"]["stillborn"] == []
    folder = tmp_path / "device"
    folder.mkdir()
    (folder / "mutants.json").write_text(json.dumps(merged))
    assert tables.unexplained(tmp_path) == [f"device: {mask}"]
    shown = tables.render(tmp_path)
    assert "1 of 2 killed (50.0%), 0 equivalent, 1 stillborn" in shown and "**not explained**" in shown
    assert "| term | 0 | 0 | 0 | 1 |  |" in shown and "a \\| b" in shown
    (folder / "survivors.toml").write_text(f'"{mask}" = "Nobody sees it."\n')
    assert tables.unexplained(tmp_path) == [] and "Nobody sees it." in tables.render(tmp_path)
