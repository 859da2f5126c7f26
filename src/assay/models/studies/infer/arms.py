"""The ways a model is run: eager, compiled, and captured into a CUDA graph."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from assay.models.studies import dynamo
from assay.worker.stopwatch import NotCapturable

_WARM = 3
"""Calls before a capture: libraries choose their algorithms and allocate their work space with the first ones."""


@dataclass(frozen=True)
class Captured:
    replay: Callable[[], Any]
    """Gives back the tensors of the capture, written anew."""
    bytes: int
    """Most that the capture held beyond what was there before it; the graph keeps it as long as it lives."""


def captured(call: Callable[[], Any]) -> Captured:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            out = call()
        graph.replay()
        torch.cuda.synchronize()
    except Exception as error:
        said = str(error).strip() or type(error).__name__
        raise NotCapturable(f"it cannot be captured into a CUDA graph: {said.splitlines()[0]}") from None

    def replay() -> Any:
        graph.replay()
        return out

    return Captured(replay, int(torch.cuda.max_memory_allocated() - before))


class Compiled:
    """A model under torch.compile, with what compiling it came to. A batch size that changed once is dynamic from then
    on, as torch has it by default."""

    def __init__(self, model: nn.Module, backend: str) -> None:
        self.function = torch.compile(model, backend=backend)
        self.seconds, self.graphs, self.breaks = 0.0, 0, 0
        self.reasons: dict[str, int] = {}

    def first(self, call: Callable[[], Any]) -> Any:
        """A call that may compile."""
        before, reasons, began = dynamo.counts(), _reasons(), time.perf_counter()
        returned = call()
        self.seconds += time.perf_counter() - began
        after = dynamo.counts()
        self.graphs += after["graphs"] - before["graphs"]
        self.breaks += after["breaks"] - before["breaks"]
        for reason, count in _reasons().items():
            if new := count - reasons.get(reason, 0):
                self.reasons[_line(reason)] = self.reasons.get(_line(reason), 0) + new
        return returned

    def to_dict(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "graphs": self.graphs,
            "breaks": self.breaks,
            "break_reasons": self.reasons,
        }


def _line(reason: str) -> str:
    """What dynamo says at length, in a line: the matter, and its explanation."""
    lines = [line for line in map(str.strip, reason.splitlines()) if line]
    explained = [line.partition(": ")[2] for line in lines if line.startswith("Explanation:")]
    return ": ".join([*lines[:1], *explained[:1]])[:300]


def _reasons() -> dict[str, int]:
    from torch._dynamo.utils import counters

    return dict(counters["graph_break"])
