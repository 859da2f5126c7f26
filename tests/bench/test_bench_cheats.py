"""bench cannot be fooled: what is done around a batch, the rules that a time must keep, and kernels that break them."""

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import assay
from assay.backends import Level, backend
from assay.bench.clocks import claims_too_much, parent_clock
from assay.bench.evidence import BenchEvidence, Floor
from assay.bench.limit import timed_floor
from assay.bench.statistics import Estimate
from assay.bench.truth import Truth, changeable
from assay.bench.verdict import ENOUGH, too_wide, verdict
from assay.catalog import library
from assay.check.plain import Baseline
from assay.kernel import Kernel, address
from assay.record import Status
from assay.selftest import entries, selftest
from assay.target import Target
from assay.worker import seal, stopwatch, yardstick
from assay.worker.buffers import Buffers
from assay.worker.change import changed
from assay.worker.questions import Fetched, Round, Time, TimeYardsticks
from assay.worker.request import Call, TensorSpec
from assay.workload import Workload

GELU = library.ops()["gelu"]
BENCH = [e.name for e in entries() if e.verb == "bench"]
QUICK = ["caches_by_samples", "lazy_tensor", "next_call", "returns_a_view", "skips_in_batches", "work_in_thread"]


# What is done around a batch


@pytest.fixture
def buffers(monkeypatch):
    """Sixteen sets of a workload of 40 elements in three variations."""
    drawn = [torch.arange(40, dtype=torch.float32) + 100 * v for v in range(3)]
    monkeypatch.setattr("assay.worker.buffers._uploaded", lambda request, spec, v, memory: drawn[v])
    x, out = (TensorSpec(name, "float32", (40,), (1,), 0, (1, 2, 3)) for name in ("x", "out"))
    call = Call(Kernel(address("op/torch"), None), "op", "", "fp32", "native", {}, (x,), (out,), (), 0, {}, {})
    request = Time(call, Round("cpu", 5, 5, 1.0, 1, 16 * 320), "", 0, variations=3, changeable=("x",))
    made = Buffers(request, memoryview(b""))
    assert made.count == 16
    return made, drawn


def test_every_call_of_a_batch_gets_values_that_no_call_had_before_and_the_parent_can_tell_which(buffers):
    made, drawn = buffers
    seen = set()
    for batch in range(4):
        made.plan(5, 8, (5, 16), (0, 5))
        made.refresh()
        for index in range(16):
            values = made.slabs["x"].tensor(index)
            call = made.fetched(index)
            assert torch.equal(values, changed(drawn[call.variation], call.seed, 0, call.sets, call.set))
            assert set(values.tolist()) <= set(drawn[call.variation].tolist())  # still within the declared range
            seen.add(tuple(values.tolist()))
        assert len(seen) > 10 * (batch + 1)  # sets may draw the same change by chance


def test_values_at_one_address_are_of_another_variation_in_the_next_batch(buffers):
    made, _ = buffers
    made.plan(0, 8, (0, 16))
    before = [made.fetched(i).variation for i in range(16)]
    made.plan(0, 8, (0, 16))
    assert all(a != made.fetched(i).variation for i, a in enumerate(before))


def test_a_call_that_wrote_nothing_is_found_among_all_of_a_batch(buffers):
    made, _ = buffers
    made.plan(3, 9, (3, 16), (0, 3))
    made.refresh()
    for index in range(3, 12):
        if index != 7:
            made.slabs["out"].tensor(index).fill_(5.0)
    assert made.unwritten(made.look()) == 7
    made.slabs["out"].tensor(7).fill_(5.0)
    assert made.unwritten(made.look()) is None


def test_inputs_that_follow_from_others_are_not_changed():
    backward = library.ops()["layernorm_backward"]
    assert changeable(Workload.of(backward, "rows=4,cols=8,dtype=fp32")) == []
    assert changeable(Workload.of(GELU, "n=8,dtype=fp32")) == ["x"]


class _Plain:
    """PyTorch's own result, without a process."""

    def __init__(self, function):
        self.function = function

    def prior(self, *_):
        return {}

    def outputs(self, workload, drawn, device):
        return [{"out": self.function(d["x"])} for d in drawn]

    def baseline(self, workload, inputs, truth, device):
        return Baseline(self.outputs(workload, [inputs], device)[0])


def test_a_round_is_judged_on_changed_values():
    workload = Workload.of(GELU, "n=5000,dtype=fp32")
    truth = Truth(workload, _Plain(torch.nn.functional.gelu), "cpu")
    told = Fetched(variation=1, seed=77, set=2, sets=9, poison=0)
    x = changed(truth.drawn[1]["x"], 77, 0, 9, 2)
    assert truth.judge("k", told, {"out": torch.nn.functional.gelu(x)}) is None
    stale = torch.nn.functional.gelu(truth.drawn[1]["x"])
    assert truth.judge("k", told, {"out": stale}).detector == "values"
    assert truth.judge("k", replace(told, variation=-(10**9), set=10**9, seed=-1), {"out": stale})  # lies do not crash


def test_where_nothing_is_computed_every_bit_counts():
    workload = Workload.of(library.find_op("transpose"), "rows=37,cols=64,dtype=fp32")
    truth = Truth(workload, _Plain(lambda x: x.t().contiguous()), "cpu")
    call = Fetched(variation=0, seed=5, set=0, sets=3, poison=0)
    right = changed(truth.drawn[0]["x"], 5, 0, 3, 0).t().contiguous()
    assert truth.judge("k", call, {"out": right}) is None
    flipped = right.clone()
    flipped.view(torch.int32)[40, 20] ^= 1
    assert truth.judge("k", call, {"out": flipped}).detector == "values"


def test_an_op_that_computes_is_not_judged_by_pytorchs_bits():
    """It says that only the exact result is right, and PyTorch's own in bf16 is not."""
    vector = assay.Tensor("n")

    @assay.op(axes={"n": assay.Axis(typical=64)}, inputs={"x": vector}, outputs={"out": vector}, roundings=0)
    def thrice(x):
        return (x * 1.1) * 2.7

    truth = Truth(Workload.of(thrice, "n=500,dtype=bf16"), _Plain(lambda x: (x * 1.1) * 2.7), "cpu")
    x = changed(truth.drawn[0]["x"], 5, 0, 3, 0)
    call = Fetched(variation=0, seed=5, set=0, sets=3, poison=0)
    assert truth.judge("k", call, {"out": (x * 1.1) * 2.7}).detector == "values"


def test_slices_of_a_costly_op_show_its_last_rows():
    """An op without magnitude, of more elements than are judged whole."""
    matrix = assay.Tensor("rows", "cols")

    @assay.op(
        axes={"rows": assay.Axis(typical=64), "cols": assay.Axis(typical=64)},
        inputs={"x": matrix},
        outputs={"out": matrix},
        independent="rows",
    )
    def scaled(x):
        return x * 0.1 + 1

    workload = Workload.of(scaled, "rows=5000,cols=64,dtype=fp32")
    truth = Truth(workload, _Plain(lambda x: x * 0.1 + 1), "cpu")
    call = Fetched(variation=0, seed=5, set=0, sets=3, poison=0)
    right = changed(truth.drawn[0]["x"], 5, 0, 3, 0) * 0.1 + 1
    assert truth.judge("k", call, {"out": right}) is None
    skipped = right.clone()
    skipped[-1, 3] = 0
    assert truth.judge("k", call, {"out": skipped}).detector == "values"


# Clocks


@pytest.mark.slow
def test_replaced_clocks_and_functions_are_noticed_and_do_not_change_a_time():
    """In a process of its own, as a worker binds them."""
    script = """
import time
from assay.worker import seal, stopwatch
import assay.worker.measure as measure
sealed = seal.Seal()
assert sealed.broken() == [] and sealed.finding() is None
real = time.perf_counter_ns
time.perf_counter_ns = lambda: 0
taken = stopwatch.HostClock().sample(lambda i: time.sleep(0.002), 0, 2)
assert taken.seconds >= 0.002, taken
assert sealed.broken() == ["time.perf_counter_ns"]
time.perf_counter_ns = real
stopwatch.HostClock.sample = lambda *_: None
measure.timed.__defaults__ = (1,)
print(sealed.broken())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['assay.worker.measure.timed', 'HostClock.sample']"


def test_settings_left_changed_are_named():
    sealed, threads = seal.Seal(), torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        detector, what = sealed.finding()
        assert detector == "settings" and f"torch's threads from {threads} to {threads + 1}" in what
        sealed.begin()  # the harness itself may choose them
        assert sealed.finding() is None
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("calls", "taken"),
    [
        ([(300, 300)], 1),
        ([(10_300, 300), (300, 300)], 2),  # interrupted once, for 10 ms
        ([(1000, 0)] * 9, 4),  # a kernel that waits: not for ever
        ([(25_000, 300)], 1),  # a busy system interrupts every long batch
    ],
)
def test_a_batch_that_was_interrupted_is_taken_again_but_not_forever(monkeypatch, calls, taken):
    """By clocks that only the calls move: (microseconds on the wall, of the processor)."""
    wall, busy, spent = 0, 0, iter(calls)

    def call(i):
        nonlocal wall, busy
        on_wall, of_processor = next(spent)
        wall, busy = wall + 1000 * on_wall, busy + 1000 * of_processor

    monkeypatch.setattr(stopwatch.bound, "now", lambda: wall)
    monkeypatch.setattr(stopwatch.bound, "busy", lambda: busy)
    sample = stopwatch.HostClock().sample(call, 0, 1, stopwatch.Around(before=lambda: None))
    assert len(calls) - len(list(spent)) == taken
    on_wall, of_processor = calls[taken - 1]
    assert (sample.seconds, sample.busy) == pytest.approx((on_wall * 1e-6, of_processor * 1e-6))


def asked(seconds, delay=lambda n: 0.0):
    """A worker whose batch really takes so long, and a parent that is kept waiting."""
    calls = itertools.count()
    return lambda times: 3e-4 + seconds * times + delay(next(calls))


@pytest.mark.parametrize("seconds", [2e-6, 2e-4, 0.05, 3.0])
def test_an_honest_time_agrees_with_the_parents_clock_even_if_it_is_kept_waiting_most_of_the_time(seconds):
    assert parent_clock(asked(seconds), seconds).agrees
    assert parent_clock(asked(seconds, lambda n: 0.0 if n % 12 == 11 else 0.08), seconds).agrees
    assert parent_clock(asked(seconds, lambda n: 20.0 if n == 0 else 0.0), seconds).agrees  # the machine stood still


@pytest.mark.parametrize("seconds, lie", [(2e-4, 6), (2e-4, 300), (0.05, 1000), (2e-6, 20)])
def test_a_time_far_from_the_parents_clock_does_not(seconds, lie):
    found = parent_clock(asked(seconds), seconds / lie)
    assert not found.agrees and found.waited >= seconds


def test_a_claim_of_nothing_at_all_ends_soon():
    asks = []
    found = parent_clock(lambda times: asks.append(times) or 1e-3 * times, 0.0)
    assert not found.agrees and len(asks) < 20


def test_times_that_add_up_to_more_than_the_round_are_refused():
    answer = SimpleNamespace(batch=10, cold=[1e-3] * 5, hot=[1e-3] * 5, call=[2e-3], single=5)
    assert claims_too_much(answer, 0.2) == ""
    assert "0.11 s" in claims_too_much(answer, 0.05)


# Limits


def test_the_floor_is_the_fastest_yardstick_of_the_same_rounds_less_three_percent():
    seen = {"copy": (2e-6, 4_000_000, "c"), "read": (1e-5, 30_000_000, "r"), "write": (1e-5, 20_000_000, "w")}
    found = timed_floor(3_000_000, seen, cold=True)
    assert found.by == "read" and found.seconds == pytest.approx(0.97e-6) and found.form == "r"
    assert timed_floor(3_000_000, seen, cold=False) is None
    assert timed_floor(3_000_000, {"copy": seen["copy"]}, cold=True) is None  # a CPU's caches may hold it


COPY = Estimate(1e-5, (0.99e-5, 1.01e-5))


def judged(cold, own=None, copy=COPY, rounds=ENOUGH, floor=None):
    return verdict(cold, own or cold, copy, BenchEvidence(gbps=1.0, converged=True, rounds=rounds, floor=floor))


def test_a_time_below_the_floor_fails_and_one_whose_interval_reaches_it_does_not():
    floor = Floor(1e-5, "write", 4700.0, "")
    status, detector, reason = judged(Estimate(0.9e-5, (0.89e-5, 0.95e-5)), floor=floor)
    assert (status, detector) == (Status.FAIL, "floor") and "the fastest write" in reason
    assert judged(Estimate(0.9e-5, (0.89e-5, 1.05e-5)), floor=floor)[0] is Status.PASS


def test_an_interval_as_wide_as_the_value_never_passes_and_fails_only_if_the_kernel_did_it():
    wide, steady = Estimate(1e-5, (1e-5, 3e-5)), Estimate(1e-5, (1e-5, 1.1e-5))
    assert too_wide(wide) and not too_wide(steady)
    assert judged(wide)[:2] == (Status.FAIL, "unsteady")
    busy = judged(wide, own=steady)  # other processes took the processor away
    assert busy[0] is Status.INCONCLUSIVE and "quiet machine" in busy[2]
    assert judged(wide, rounds=ENOUGH - 1)[0] is Status.INCONCLUSIVE
    assert judged(wide, copy=Estimate(1e-5, (0.5e-5, 1.5e-5)))[0] is Status.INCONCLUSIVE
    assert judged(steady)[0] is Status.PASS


# Yardsticks


def test_the_fastest_form_of_a_yardstick_is_chosen_and_named():
    watch = stopwatch.HostClock()
    request = TimeYardsticks(Round("cpu", 2, 2, 0.05, 1, 1 << 30), bytes=64_000, beyond_cache=4)
    small = yardstick.measured(request, watch)
    assert small.copy.form == "torch copy_" and len(small.cold) == 2 and small.read is None
    large = yardstick.measured(replace(request, beyond_cache=0), watch)
    assert large.read.form.startswith("torch") and large.write.form in ("torch fill_", "torch zero_")
    assert min(large.write.seconds) > 0 and large.write.bytes == 64_000


def test_the_best_forms_are_tried_again_for_every_size(monkeypatch):
    """The driver's copy wins at 64 MB and is a third slower at 64 MB and 4 KB."""
    speeds = {"driver": {96: 1.0, 100: 9.0}, "ours": {96: 2.0, 100: 2.0}, "slow": {96: 4.0, 100: 3.0}}
    speeds["slowest"] = {96: 5.0, 100: 0.1}  # not among the best of its size class: not tried again
    tried = []

    def sample(call, first, count, around=None):
        name, size = call(first)
        tried.append((name, size))
        return SimpleNamespace(seconds=speeds[name][size])

    forms = {name: lambda memory, size, name=name: lambda i: (name, size) for name in speeds}
    monkeypatch.setattr(yardstick, "_forms", lambda kind, device: forms)
    monkeypatch.setattr(yardstick, "_fastest", {})
    monkeypatch.setattr(yardstick, "_ranked", {})
    watch = SimpleNamespace(sample=sample, finish=lambda: None, shortest_batch=1.0)
    assert yardstick._chosen("copy", "cuda", None, 96, watch)[0] == "driver"
    assert {name for name, _ in tried} == set(speeds)
    tried.clear()
    assert yardstick._chosen("copy", "cuda", None, 100, watch)[0] == "ours"
    assert {name for name, _ in tried} == {"driver", "ours", "slow"}
    tried.clear()
    assert yardstick._chosen("copy", "cuda", None, 96, watch)[0] == "driver" and not tried


@pytest.mark.skipif(backend("cuda").availability().level is Level.MISSING, reason="no NVRTC")
def test_the_cuda_yardsticks_build_and_access_16_bytes_at_a_time():
    from assay.backends.cuda import Source

    source = Source(Path(yardstick.__file__).with_name("yardstick.cu"))
    for kind, instances in yardstick.INSTANCES.items():
        for unroll, hint in instances if kind == "copy" else instances[-1:]:
            ptx = source.build(f"{kind}<{unroll}, {hint}>", Target("sm_90a")).ptx.decode()
            stores = "st.global.cs.v4.u32" if hint else "st.global.v4.u32"
            if kind != "write":
                fetch = ".L2::256B" if hint == 2 else ""
                loads = f"ld.global.nc.L1::no_allocate{fetch}.v4.u32" if hint else "ld.global.v4.u32"
                assert ptx.count(loads) == unroll, (kind, unroll, hint)
            if kind != "read":
                assert ptx.count(stores) == unroll, (kind, unroll, hint)


# Kernels that cheat


@pytest.mark.slow
def test_quick_cheats_are_caught_by_the_detector_they_name():
    records = {r.kernel: r for r in selftest(QUICK)}
    assert set(records) == set(QUICK)
    for name, record in records.items():
        assert record.status in (Status.PASS, Status.INCONCLUSIVE), f"{name}: {record.reason}"
        assert record.evidence["caught_by"] in ("", *record.evidence["detector"].split(" or "))
    assert sum(r.status is Status.PASS for r in records.values()) >= 3  # however busy the machine


@pytest.mark.whole
def test_every_cheat_that_this_machine_can_time_is_caught(large_buffers):
    needed = {e.name: e.needs for e in entries() if e.verb == "bench"}
    for record in selftest([n for n in BENCH if n not in QUICK and not needed[n]]):
        assert record.status in (Status.PASS, Status.INCONCLUSIVE), f"{record.kernel}: {record.reason}"


@pytest.mark.slow
def test_a_large_workload_has_a_floor_from_its_own_rounds(large_buffers):
    """On the CPU a workload of more than four times the last cache."""
    from assay.worker.buffers import last_cache

    elements = last_cache("cpu") // 2 + 1_000_000
    if elements * 16 > 1 << 30:
        pytest.skip("the last cache is very large")
    found = [*assay.bench("silu/torch", workload=f"n={elements},dtype=fp32", rounds=5, budget=0.1, threads=1)]
    (record,) = [r for r in found if r.kernel == "silu/torch"]
    assert record.status in ("pass", "inconclusive"), record.reason
    floor = record.evidence["floor"]
    assert floor["by"] in ("read", "write", "copy") and 0 < floor["seconds"] < record.interval[1]
    assert record.evidence["parent_clock"]["agrees"] and record.evidence["copy"]["form"] == "torch copy_"
