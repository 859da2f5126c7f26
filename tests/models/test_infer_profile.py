"""Which module, which operator and which workload every piece of work of a pass belongs to."""

import itertools
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.autograd import DeviceType

from assay.models.studies.infer import profiled
from assay.models.studies.infer.calls import calls
from assay.models.studies.infer.profiled import MODULE, Span, Work, attribute, middle, outermost, passes
from assay.models.swap import swap
from assay.workload import Workload

# Attribution


@st.composite
def nested(draw, begin=0, end=240, depth=0):
    """Spans inside each other, as a call stack leaves them."""
    found = []
    for _ in range(draw(st.integers(0, 3 if depth < 3 else 0))):
        start = draw(st.integers(begin, end))
        stop = draw(st.integers(start, end))
        name = draw(st.sampled_from([MODULE + "a", MODULE + "b", MODULE, "aten::x", "assay::y"]))
        found.append(Span(start, stop, name))
        found += draw(nested(start, stop, depth + 1)) if stop > start else []
        begin = stop
        if begin >= end:
            break
    return found


@given(nested(), st.lists(st.tuples(st.none() | st.integers(-5, 245), st.integers(0, 9))))
def test_work_belongs_to_the_innermost_module_and_no_work_is_lost(spans, pieces):
    works = [Work(at, length) for at, length in pieces]
    found = attribute(spans, works)
    assert found.total == sum(w.length for w in works)
    # The plain way: of all spans open at that moment, in the order they were opened; of two that are open from and
    # until the same moment, the module is the outer one.
    spans = sorted(spans, key=lambda s: (s.start, -s.end, not s.module))
    expected = {}
    for work in works:
        open_ = [s for s in spans if work.at is not None and s.start <= work.at < s.end]
        modules = [i for i, s in enumerate(open_) if s.module]
        if not modules:
            continue
        inside = [s.name for s in open_[modules[-1] + 1 :]]
        key = open_[modules[-1]].name.removeprefix(MODULE), inside[0] if inside else ""
        expected[key] = expected.get(key, 0) + work.length
    assert {(p.path, p.operator): p.length for p in found.parts} == expected


@given(nested())
def test_outermost_operators_do_not_overlap(spans):
    found = outermost(spans)
    for a, b in itertools.pairwise(found):
        assert a.at + a.length <= b.at


def test_the_profile_of_a_pass_sees_each_module_once():
    model = nn.Sequential(nn.Linear(64, 64), nn.Sequential(nn.LayerNorm(64), nn.GELU()))
    x = torch.randn(16, 64)
    with torch.no_grad():
        told = passes({"torch": (model, lambda: model(x))}, 3, "cpu")["torch"]
    assert {(p["path"], p["operator"]) for p in told["parts"]} == {
        ("0", "aten::linear"),
        ("1.0", "aten::layer_norm"),
        ("1.1", "aten::gelu"),
    }
    assert sum(p["seconds"] for p in told["parts"]) + told["between"] == pytest.approx(told["total"])


def _profile(seconds, between):
    parts = [{"path": path, "operator": "", "seconds": s, "pieces": 1} for path, s in seconds.items()]
    total = sum(seconds.values()) + between
    return {"total": total, "between": between, "wall": total, "parts": parts}


def test_one_interrupted_pass_changes_no_part():
    steady = {"a": 1.0, "b": 2.0}
    told = middle([_profile(steady, 0.5), _profile({"a": 9.0, "b": 2.0}, 0.5), _profile({"a": 1.0, "b": 30.0}, 0.5)])
    assert {p["path"]: p["seconds"] for p in told["parts"]} == steady
    assert sum(p["seconds"] for p in told["parts"]) + told["between"] == pytest.approx(told["total"])


def test_ways_are_profiled_in_turn():
    order = []
    models = {name: nn.Linear(4, 4) for name in ("torch", "variant")}
    x = torch.randn(2, 4)
    passes({n: (m, lambda n=n, m=m: (order.append(n), m(x))) for n, m in models.items()}, 2, "cpu")
    assert order == ["torch", "variant"] * 3


@dataclass(frozen=True)
class Event:
    """As the profiler gives them."""

    called: str
    device: DeviceType
    start: int
    length: int
    correlation: int = 0
    linked: int = 0
    annotation: bool = False

    def name(self):
        return self.called

    def device_type(self):
        return self.device

    def start_ns(self):
        return self.start

    def duration_ns(self):
        return self.length

    def correlation_id(self):
        return self.correlation

    def linked_correlation_id(self):
        return self.linked

    def is_user_annotation(self):
        return self.annotation

    def start_thread_id(self):
        return 1


def test_a_kernel_on_the_gpu_is_found_by_the_operator_or_the_call_that_launched_it():
    cpu, cuda = DeviceType.CPU, DeviceType.CUDA
    events = [
        Event(MODULE, cpu, 0, 100),
        Event(MODULE + "act", cpu, 10, 30),
        Event("assay::gelu__cuda", cpu, 12, 20, correlation=5),
        Event("cuLaunchKernelEx", cpu, 35, 1, correlation=77),
        Event("linked", cuda, 300, 7, correlation=70, linked=5),
        Event("called", cuda, 310, 11, correlation=77),
        Event("unknown", cuda, 330, 2, correlation=99),
        Event(MODULE + "act", cuda, 300, 40, annotation=True),  # the range, as the device's timeline repeats it
    ]
    found = attribute(profiled._spans(events), profiled._launched(events))
    assert {(p.path, p.operator): p.length for p in found.parts} == {("act", "assay::gelu__cuda"): 7, ("act", ""): 11}
    assert found.unattributed == 2 and found.total == 20


def test_a_kernels_workload_is_told_as_bench_takes_it():
    from assay.catalog import library

    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, bias=False), nn.Flatten(), nn.LayerNorm(36, eps=1e-6)).eval()
    with torch.no_grad(), swap(model, {"conv2d": "conv2d/torch", "layernorm": "layernorm/torch"}) as report:
        found = calls(model, lambda: model(torch.randn(2, 3, 8, 8)), report)
    (conv,), (norm,) = (list(c.workloads) for c in found)
    assert conv == "n=2,c=3,h=8,w=8,k=4,r=3,s=3,stride=2,padding=0,dtype=fp32,without=bias"
    assert norm == "rows=2,cols=36,eps=1e-06,dtype=fp32"
    for text, op in ((conv, "conv2d"), (norm, "layernorm")):
        assert str(Workload.of(library.ops()[op], text)) == text
