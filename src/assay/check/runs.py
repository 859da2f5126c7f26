"""The calls of a workload: their values, addresses, leftovers and circumstances; and their results."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from assay.lazy import torch

USUAL, CHANGED, FRESH = 0, 1, 2
"""The indices of the first sets of values: as drawn, with one element changed, and drawn anew."""

SHARED = ("nan", "number", "barriers")
"""What may be left in shared memory: NaN in every float format, numbers, or barriers whose first phase is complete."""
_DELAYED = 8
"""Calls of a workload with delays, besides the first two."""
ELSEWHERE = "called from another thread than the one that imported its file"


@dataclass(frozen=True)
class Run:
    values: int
    place: int = 0
    """The index of the address."""
    bands: int = 0
    """The index of the content of everything outside the tensors."""
    held: str = "random"
    """The contents of the outputs before the call (check.leftovers)."""
    order: str = ""
    """The order in which an interpreter runs the programs of a grid."""
    threads: int = 0
    """Threads for a CPU kernel; 0: as usual."""
    busy: bool = False
    """Whether another thread of the process works at the same time."""
    thread: bool = False
    """Whether the call comes from a new thread, as from PyTorch's backward pass and from servers."""
    load: str = ""
    """The load that keeps a GPU busy during the call."""
    late: str = ""
    """On a GPU: `queued`, the inputs arrive with a delay on the current stream; `arrived`, the call waits for them."""
    shared: str = "nan"
    """What an earlier kernel left in the shared memory of a GPU: an item of SHARED."""

    @property
    def circumstances(self) -> str:
        """The circumstances in words; empty for the usual ones."""
        order = self.order.partition(":")[0]
        orders = {
            "reversed": "with the programs of the grid in reverse order",
            "shuffled": "with the programs of the grid in another order",
            "isolated": "with every program of the grid seeing memory as it was at the launch, as when all run at once",
        }
        loads = {
            "blocks": "while other blocks keep the multiprocessors busy",
            "memory": "while copies keep the memory busy",
        }
        words = [orders[order]] if order else []
        words += [f"with {self.threads} thread{'s' * (self.threads > 1)}"] if self.threads else []
        words += ["beside a busy thread"] if self.busy else []
        words += [ELSEWHERE] if self.thread else []
        words += [loads[self.load]] if self.load else []
        words += ["with completed barriers (mbarrier) left in shared memory"] if self.shared == "barriers" else []
        return ", ".join(words)


@dataclass
class Done:
    """One call and its results."""

    run: Run
    result: dict[str, torch.Tensor]
    held: dict[str, torch.Tensor]
    """The contents of the outputs before the call."""
    final: dict[str, torch.Tensor]
    """The result after the device became idle; only on a GPU can it differ from `result`."""


FIRST = Run(USUAL, held="nan")
"""The first call of every workload, and the only one of a large one."""
OTHER_BANDS = 2
"""The place whose guard bands differ from those of the first call, with the same values."""
FENCES = {1: "before", OTHER_BANDS: "behind"}
"""Places at which, on a GPU, memory on one side of each tensor is unmapped (worker.fence)."""


RANDOM = (FIRST, Run(USUAL, 1, held="random"), Run(USUAL, held="number"))
"""The calls of an op that draws at random."""


def lean(mode: str, rng: random.Random) -> list[Run]:
    """Return one more call on the same values, at other addresses, with other bands and another order of programs."""
    interpreted = mode in ("triton-interpret", "numba-sim")
    order = rng.choice(("reversed", f"shuffled:{rng.getrandbits(32)}", "isolated")) if interpreted else ""
    return [Run(USUAL, OTHER_BANDS, 1, "random", order=order)]


def delayed() -> list[Run]:
    """Return the further calls of a kernel whose code waits at random. Two sets of values take turns, so that stale
    values that a race reads are not right by chance."""
    fresh = 1
    return _on_a_gpu([Run(fresh, held="other"), *(Run(i % 2, i % 3, held="nan") for i in range(_DELAYED))])


def _on_a_gpu(runs: list[Run]) -> list[Run]:
    """Return the calls with other contents of shared memory each time. The first call had the first of them."""
    return [replace(run, shared=SHARED[i % len(SHARED)]) for i, run in enumerate(runs, 1)]


def planned(mode: str, device: str, threads: int, changed: int, rng: random.Random) -> list[Run]:
    """Return four more calls, one for each further set of values, and on a GPU one with late inputs.

    A kernel may use `threads` threads; `changed` is how many sets of values follow the first three, each in the first
    buffers again. A GPU kernel is also called while the memory is busy, and if there are further sets, while the
    multiprocessors are."""
    interpreted = mode in ("triton-interpret", "numba-sim")
    turned = rng.choice(("reversed", f"shuffled:{rng.getrandbits(32)}")) if interpreted else ""
    parallel = threads > 1
    runs = [
        Run(CHANGED, bands=1, held="random"),
        Run(FRESH, held="other"),
        Run(USUAL, 1, held="number", order=turned, threads=1 if parallel else 0, thread=True),
        Run(USUAL, OTHER_BANDS, 1, "random", order="isolated" if interpreted else "", busy=parallel),
    ]
    kinds = ("shuffled", "zeros", "random")
    runs += [Run(FRESH + 1 + i, bands=i % 2, held=kinds[i % len(kinds)]) for i in range(changed)]
    if device == "cuda":
        runs.append(Run(USUAL, 1, held="nan", late="queued"))
        runs += [Run(USUAL, 2, held="nan", load="blocks")] if changed else []
        # On other values than the call before, so that stale values that a race reads are not right by chance.
        runs.append(Run(FRESH, 2, held="nan", load="memory"))
    return _on_a_gpu(runs) if device == "cuda" else runs
