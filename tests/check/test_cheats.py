"""Kernels that are right only as long as nobody looks: what they remember, recognise, replace, leave behind or rely on
is seen. The corpus of selftest holds one kernel for each; here are the parts, and what a corpus cannot hold."""

import random

import numpy as np
import pytest
import torch

import assay
from assay import inputs
from assay.backends.grid_order import _Arrays, _Stores, place_of
from assay.catalog import library
from assay.catalog.select import select
from assay.check import racecheck, runs, variations
from assay.kernel import Kernel, address
from assay.record import Record, Status
from assay.sanitize import Problem, Report
from assay.worker.patches import Patches
from assay.worker.questions import Try
from assay.worker.request import Call, TensorSpec
from assay.worker.settings import Settings
from assay.workload import Workload

HEAD = "import torch\nfrom assay import kernel\n\n"


def source(body, top=""):
    return f'{HEAD}{top}\n@kernel("gelu", backend="torch")\ndef mine(x, *, out):\n    {body}\n'


def checked(tmp_path, text, **options):
    file = tmp_path / "mine.py"
    file.write_text(text)
    (record,) = assay.check(file, dtypes="fp32", **({"workloads": 2} | options))
    return record


GELU = "torch.ops.aten.gelu.out(x, out=out)"
AT_IMPORT = {
    "torch.backends.cuda.matmul.allow_tf32": "torch.backends.cuda.matmul.allow_tf32 = True",
    "torch.backends.cudnn.allow_tf32": "torch.backends.cudnn.allow_tf32 = True",
    "torch.use_deterministic_algorithms": "torch.use_deterministic_algorithms(True)",
    "torch.equal": "torch.equal = lambda *_: True",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", AT_IMPORT)
def test_a_setting_changed_while_the_file_is_imported_is_named(name, tmp_path):
    record = checked(tmp_path, source(GELU, AT_IMPORT[name]), workloads=1)
    assert (record.status, record.evidence["detector"]) == ("fail", "global")
    assert name in record.reason and "for the whole process" in record.reason


def test_a_changed_setting_is_mentioned_beside_a_wrong_result(tmp_path):
    record = checked(tmp_path, source("out.zero_(); torch.set_grad_enabled(False)"), workloads=1)
    assert record.evidence["detector"] in ("values", "nonfinite")
    assert "besides" in record.reason and "torch.set_grad_enabled from True to False" in record.reason


def test_a_setting_is_put_back_before_the_next_call(tmp_path):
    """Threads, garbage collection and the like are nobody's mistake, and reach no other call."""
    body = f"""import gc, sys
    assert gc.isenabled() and sys.getprofile() is None and torch.get_num_threads() == 1
    assert torch.backends.mkldnn.enabled
    gc.disable(); sys.setprofile(lambda *_: None); torch.set_num_threads(2); torch._C._set_mkldnn_enabled(False)
    {GELU}"""
    assert checked(tmp_path, source(body)).status == "pass"


LEFT_OPEN = []
CHANGES = {
    "torch.set_float32_matmul_precision": lambda: torch.set_float32_matmul_precision("high"),
    "torch.backends.fp32_precision": lambda: setattr(torch.backends, "fp32_precision", "tf32"),
    "allow_bf16_reduced_precision_reduction": lambda: setattr(
        torch.backends.cuda.matmul,
        "allow_bf16_reduced_precision_reduction",
        not torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
    ),
    "torch.set_default_dtype": lambda: torch.set_default_dtype(torch.float64),
    "torch.set_default_device": lambda: torch.set_default_device("meta"),
    "torch.set_flush_denormal": lambda: torch.set_flush_denormal(True),
    "torch.manual_seed": lambda: torch.manual_seed(7),
    "torch.set_grad_enabled": lambda: torch.set_grad_enabled(False),
    "torch.inference_mode": lambda: LEFT_OPEN.append(torch._C._InferenceMode(True)),
    "autocast on cpu": lambda: torch.autocast("cpu").__enter__(),
    "torch.use_deterministic_algorithms": lambda: torch.use_deterministic_algorithms(True),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_setting_that_others_feel_is_noticed_once_and_put_back(name):
    known = Settings()
    assert known.restore() == []
    try:
        CHANGES[name]()
    finally:
        changes = known.restore()
    assert any(name in change.name for change in changes)
    assert all(change.instead for change in changes)
    assert known.restore() == []


@pytest.mark.parametrize("module", [random, np.random], ids=["random", "numpy.random"])
def test_a_global_generator_may_be_drawn_from_and_not_seeded(module):
    def changes(call):
        known = Settings()
        found = []
        for _ in range(3):
            call()
            found += [change.name for change in known.restore()]
        return set(found)

    before = random.getstate(), np.random.get_state()
    try:
        assert changes(module.random) == set()
        assert changes(lambda: module.seed(3)) == {f"{module.__name__}.seed"}
        assert changes(lambda: (module.seed(3), module.random())) == {f"{module.__name__}.seed"}
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


def test_replaced_functions_are_named_and_installed_packages_may_replace():
    patches = Patches()
    assert patches.replaced() == []
    equal, close = torch.equal, torch.allclose
    try:
        torch.Tensor.copy_ = lambda self, *_: self  # inherited: it hides what it replaces
        torch.equal = torch.allclose
        torch.allclose = np.testing.assert_allclose  # as a package does that is built on another
        assert set(patches.replaced()) == {"torch.equal", "torch.Tensor.copy_"}
    finally:
        torch.equal, torch.allclose = equal, close
        del torch.Tensor.copy_
    assert patches.replaced() == []


def drawn(text, name):
    op = library.ops()[name]
    workload = Workload.of(op, text)
    return workload, inputs.generate(workload, 0), inputs.generate(workload, 1)


@pytest.mark.parametrize("name", ["x", "weight", "bias"])
def test_one_element_changes_at_a_place_nobody_can_foresee(name):
    workload, first, fresh = drawn("rows=8,cols=64,dtype=fp32", "layernorm")
    places = set()
    for _ in range(12):
        found = variations.one_element(workload, first, fresh, name, random.SystemRandom(), lambda _: True)
        different = {n for n in first if not torch.equal(first[n], found.values[n])}
        assert different == {name}
        (place,) = (first[name] != found.values[name]).flatten().nonzero().flatten().tolist()
        assert f"element {place} of `{name}` changed from" in found.change
        assert place not in (0, first[name].numel() // 2, first[name].numel() - 1)
        places.add(place)
    assert len(places) > 3


def test_a_change_that_does_not_matter_is_not_used():
    workload, first, fresh = drawn("n=100,dtype=fp32", "gelu")
    asked = []

    def tells(values):
        asked.append(values)
        return len(asked) == 3

    assert variations.one_element(workload, first, fresh, "x", random.Random(1), tells).values is asked[2]
    assert variations.one_element(workload, first, fresh, "x", random.Random(1), lambda _: False) is None


def test_another_order_keeps_every_sum_and_a_few_elements_are_few():
    workload, first, fresh = drawn("n=1000,dtype=fp32", "gelu")
    turned = variations.reordered(workload, first, random.Random(1)).values["x"]
    assert not torch.equal(turned, first["x"]) and torch.equal(turned.sort().values, first["x"].sort().values)
    few = variations.few_elements(workload, first, fresh, "x", random.Random(1)).values["x"]
    assert 2 <= int((few != first["x"]).sum()) <= 50


@pytest.mark.slow
def test_inputs_that_follow_from_others_follow_their_change():
    op = next(o for o in library.ops().values() if any(t.given for t in o.inputs.values()))
    workload = Workload.of(op, "")
    first, fresh = (inputs.generate(workload, v) for v in (0, 1))
    given = next(n for n, t in op.inputs.items() if t.given)
    free = next(n for n in first if variations.free(op.inputs[n]))
    few = variations.few_elements(workload, first, fresh, free, random.Random(1)).values
    assert torch.equal(few[given], variations.completed(workload, few)[given])
    assert variations.completed(workload, fresh)[given].equal(fresh[given])


@pytest.mark.parametrize(
    ("mode", "device", "threads"),
    [("native", "cpu", 1), ("native", "cpu", 4), ("triton-interpret", "cpu", 1), ("native", "cuda", 1)],
)
def test_the_calls_of_a_workload(mode, device, threads):
    plan = [runs.FIRST, *runs.planned(mode, device, threads, 3, random.Random(1))]
    assert len(plan) <= (8 if device == "cpu" else 11)
    again = [r for r in plan if r.values == runs.USUAL]
    assert len({r.place for r in again}) == 3, "old values come at fresh addresses"
    assert {r.held for r in plan} >= {"nan", "number", "random", "other", "shuffled", "zeros"}
    assert all(r.place == 0 for r in plan if r.values != runs.USUAL and not r.load), (
        "other values come in the same buffers"
    )
    assert {r.bands for r in plan} == {0, 1}
    assert [bool(r.order) for r in plan].count(True) == (2 if mode == "triton-interpret" else 0)
    assert [r.late for r in plan].count("queued") == (device == "cuda")
    assert {r.load for r in plan} == ({"", "blocks", "memory"} if device == "cuda" else {""})
    assert any(r.threads == 1 for r in plan) == (threads > 1)


@pytest.mark.parametrize("order", ["reversed", "shuffled:17", "isolated"])
@pytest.mark.parametrize("grid", [(7,), (3, 4), (2, 3, 5)])
def test_every_program_runs_once_in_every_order(order, grid):
    points = list(np.ndindex(*grid))
    turned = [place_of(order, grid)(p) for p in points]
    assert sorted(turned) == points and (turned != points) == (order != "isolated")


class _Memory:
    """The two functions of Triton's interpreter that touch memory, on a list."""

    def __init__(self, size):
        self.cells = np.zeros(size)

    def load(self, where, lanes, other, dtype):
        return np.where(lanes, self.cells[where], other)

    def store(self, where, value, lanes):
        self.cells[where[lanes]] = value[lanes]

    def atomic_rmw(self, where, value):
        self.cells[where] += value


def test_isolated_programs_do_not_see_each_others_stores_but_all_stores_count():
    memory = _Memory(4)
    log, lane = _Stores(memory), np.array([True])
    for program in range(3):
        log.next_program()
        total = log.load(np.array([0]), lane, np.zeros(1), float)
        assert total == 0
        log.store(np.array([0]), total + 1, lane)
        assert log.load(np.array([0]), lane, np.zeros(1), float) == 1, "its own store it sees"
        log.store(np.array([1 + program]), np.array([5.0]), lane)
    log.finish()
    assert memory.cells.tolist() == [1, 5, 5, 5]


def test_from_the_first_atomic_on_programs_run_as_usual():
    memory = _Memory(2)
    log, lane = _Stores(memory), np.array([True])
    for _ in range(3):
        log.next_program()
        log.atomic_rmw(0, 1.0)
        log.store(np.array([1]), log.load(np.array([1]), lane, np.zeros(1), float) + 1, lane)
    log.finish()
    assert memory.cells.tolist() == [3, 3]


def test_isolated_blocks_of_the_simulator_merge_their_stores():
    array = np.zeros(4)
    fake = type("Fake", (), {})()
    fake._ary = array
    arrays = _Arrays()
    for block in range(3):
        arrays.before((fake,), first=block == 0)
        assert array[0] == 0
        array[0] += 1
        array[1 + block] = 5
        arrays.after(last=block == 2)
    assert array.tolist() == [1, 5, 5, 5]


def test_an_unstable_result_has_racecheck_asked_where_it_can_run(monkeypatch):
    ((kernel, op),) = select(["gelu/triton"])
    record = Record(
        "check",
        kernel.name,
        "n=5,dtype=fp32",
        Status.FAIL,
        "unstable: now and then",
        "run",
        {"detector": "unstable"},
        "",
        {},
        [],
        {},
        0.0,
    )
    asked = []
    problem = Problem("racecheck", "Race", "gelu", "gelu.cu:7", "", 0, "", 0, 3, "")

    def run(kernel, workload, tool, parameters, seconds, stopped):
        asked.append((str(workload), tool))
        return Report(tool, (problem,))

    monkeypatch.setattr("assay.check.racecheck.sanitize.run", run)
    monkeypatch.setattr("assay.check.racecheck.sanitize.why_not", lambda _: ("no GPU", "buy one"))
    assert racecheck.explained(record, kernel, op, {}) == record and not asked
    monkeypatch.setattr("assay.check.racecheck.sanitize.why_not", lambda _: ("", ""))
    found = racecheck.explained(record, kernel, op, {})
    assert asked == [("n=5,dtype=fp32", "racecheck")]
    assert str(problem) in found.reason and not found.evidence["racecheck"]["clean"]
    other = Record(**(vars(record) | {"evidence": {"detector": "values"}}))
    assert racecheck.explained(other, kernel, op, {}) == other and len(asked) == 1


def test_a_kernel_gets_the_same_tensor_objects_at_the_same_addresses_again(tmp_path):
    """As in a user's loop: a cache by id(), by `is` or by address would hit."""
    top = "seen = {}\n"
    body = f"""seen.setdefault(x.data_ptr(), id(x))
    assert seen[x.data_ptr()] == id(x)
    {GELU}"""
    assert checked(tmp_path, source(body, top), workloads=1).status == "pass"


def test_what_goes_to_a_device_and_back_is_bytes(monkeypatch):
    """The copies of a GPU's place, with a driver that copies inside this process."""
    from ctypes import memmove

    from assay.worker import place

    class Driver:
        def to_device(self, target, source, size):
            memmove(target, source, size)

        def to_host(self, target, source, size, stream):
            memmove(target, source, size)

        def wait_for_device(self):
            pass

    monkeypatch.setattr(place, "_Driver", Driver)
    monkeypatch.setattr(place.DevicePlace, "device", "cpu")
    arena = memoryview(bytearray(1 << 16))
    x, out = (TensorSpec(name, "float32", (100,), (1,), 1) for name in ("x", "out"))
    call = Call(Kernel(address("op/torch"), None), "op", "", "fp32", "native", {}, (x,), (out,), (), 1 << 16, {}, {})
    places = {"x": (0, 20480), "out": (10240, 30720)}
    here = place.DevicePlace(Try(call, "cuda", 0, places, {"out": 61440}, place=1), arena)
    arena[20480:30720] = bytes(range(256)) * 40
    here.load()
    assert here.buffers["x"].tolist()[:256] == list(range(256))
    here.tensors["out"].copy_(torch.arange(100.0))
    here.keep(None, 0)
    assert torch.frombuffer(arena, dtype=torch.float32, count=100, offset=61440).tolist() == list(range(100))
    here.tensors["out"].fill_(7.0)
    here.finish()
    held = torch.frombuffer(arena, dtype=torch.float32, count=100, offset=30720 + 4096 + 4)
    assert held.tolist() == [7.0] * 100
    here.keep({"out": torch.arange(200.0)[::2]}, 0)
    assert torch.frombuffer(arena, dtype=torch.float32, count=100, offset=61440).tolist() == list(range(0, 200, 2))


BYTES = """import torch
from assay import Axis, Tensor, kernel, op

byte = Tensor("n", dtype="int8")

@op(axes={"n": Axis(typical=4096)}, inputs={"x": byte}, outputs={"out": byte})
def same_bytes(x):
    return x

@kernel("same_bytes", backend="torch")
def mine(x, *, out):
    BODY
"""


@pytest.mark.parametrize(
    ("body", "detector"), [("out.copy_(torch.arange(x.numel()))", "values"), ("out[1:] = x[1:]", "unwritten")]
)
def test_a_wrong_byte_that_equals_what_stood_there_by_chance_was_written(body, detector, tmp_path):
    """One byte of 256 is the leftover's: only one that keeps other leftovers too was never written."""
    record = checked(tmp_path, BYTES.replace("BODY", body), workloads=None, workload="n=65536")
    assert (record.status, record.detector) == ("fail", detector)


PEER = """import torch
from assay import kernel
from assay.errors import Unsupported

@kernel("gelu", backend="torch", needs="torch")
def mine(x, *, out):
    if x.numel() % DIVISOR:
        raise Unsupported(f"{x.numel()} elements are no multiple of DIVISOR")
    torch.ops.aten.gelu.out(x, out=out)
"""


def test_what_a_peer_refuses_is_one_reason_and_leaves_a_verdict_where_enough_was_tried(tmp_path):
    record = checked(tmp_path, PEER.replace("DIVISOR", "2"), workloads=60)
    assert record.status == "pass" and record.reason.count("refused by it") == 1
    few = checked(tmp_path, PEER.replace("DIVISOR", "4096"), workloads=20)
    assert few.status == "inconclusive" and few.reason.count("are no multiple of 4096") == 1
