"""Measures bandwidth in bytes per second: device memory as a function of bytes in flight, L2, L1, shared memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from assay.machine.lab import QUICK, f32, key
from assay.machine.probe import Measured, Probe
from assay.machine.proof import Proof

if TYPE_CHECKING:
    import torch

    from assay.machine.lab import Kernel, Lab

THREADS = 512
"""Threads of a block that reads a cache."""
DRAM_THREADS = 256
UNROLLS = (1, 2, 4, 8)
BLOCKS = (1, 2, 4, 8, 0)
"""Blocks per multiprocessor; 0 means as many as are needed for each thread's loop to run once."""
THREADS_PER_SM = 2048
WORKING_SET = 4 << 30

Go = Callable[["torch.Tensor"], None]
Cell = tuple[dict[str, Any], float, Go]
"""One cell of a sweep: its parameters, the work of one launch, and a function that launches once."""


def best_of(lab: Lab, cells: Iterable[Cell], workload: str, quick: int = QUICK) -> Measured:
    """Try every cell of a sweep, then measure the fastest in full. The figure is that cell's; the table has all of
    them."""
    table, best = [], None
    seen: list[float] = []
    for about, work, go in cells:
        seconds, clocks = lab.time(go, quick, warm_up=1)
        seen += clocks
        rate = work / min(seconds)
        table.append({**about, "value": rate})
        if best is None or rate > best[0]:
            best = (rate, about, work, go)
    assert best is not None
    _, about, work, go = best
    seconds, clocks = lab.time(go)
    samples, clocks = [work / s for s in seconds], clocks or seen  # if launches are too short, use the sweep's clocks
    measured = Measured(samples, clocks, workload, table, {"best": about})
    return Measured(samples, clocks, workload, table, {"best": about, **lab.per_clock(measured.value, clocks)})


Launcher = Callable[["Kernel", "list[torch.Tensor]", int, int], Go]


def _dram(lab: Lab, probe: Probe, buffers: int, launch: Launcher) -> Measured:
    bytes_ = min(WORKING_SET, lab.memory // 6 >> 20 << 20)
    data = [lab.floats(bytes_) for _ in range(buffers)]

    def cells() -> Iterable[Cell]:
        for unroll in UNROLLS:
            kernel = lab.kernel(probe, f"{probe.key.split('.')[1]}<{unroll}>")
            for blocks in BLOCKS:
                grid = lab.sms * blocks if blocks else bytes_ // 16 // (DRAM_THREADS * unroll)
                sweep = grid * DRAM_THREADS * unroll
                n = bytes_ // 16 // sweep * sweep
                resident = lab.sms * kernel.resident(DRAM_THREADS, blocks or THREADS_PER_SM // DRAM_THREADS)
                about = {
                    "unroll": unroll,
                    "blocks_per_sm": blocks or grid // lab.sms,
                    "bytes_in_flight": resident * unroll * 16 * max(1, buffers - 1),
                }
                yield about, n * 16.0 * buffers, launch(kernel, data, grid, n)

    return best_of(lab, cells(), f"bytes={bytes_ * buffers}")


def _read(lab: Lab, probe: Probe) -> Measured:
    return _dram(lab, probe, 1, lambda k, d, grid, n: lambda c: k(grid, DRAM_THREADS, d[0], n, key(), lab.sink, c))


def _write(lab: Lab, probe: Probe) -> Measured:
    return _dram(lab, probe, 1, lambda k, d, grid, n: lambda c: k(grid, DRAM_THREADS, d[0], n, key(), c))


def _copy(lab: Lab, probe: Probe) -> Measured:
    return _dram(lab, probe, 2, lambda k, d, grid, n: lambda c: k(grid, DRAM_THREADS, d[0], d[1], n, c))


def _triad(lab: Lab, probe: Probe) -> Measured:
    return _dram(lab, probe, 3, lambda k, d, grid, n: lambda c: k(grid, DRAM_THREADS, *d, n, f32(0.5), c))


def power_of_two(at_most: int) -> int:
    return 1 << (at_most.bit_length() - 1)


def _l2(lab: Lab, probe: Probe) -> Measured:
    n = power_of_two(lab.l2 // 3 // 16)
    data = lab.floats(n * 16)
    return _rounds(lab, probe, "read_l2", n, (1, 2, 4), lambda grid: data, f"bytes={n * 16}")


def _l1(lab: Lab, probe: Probe) -> Measured:
    n = 2048
    return _rounds(lab, probe, "read_l1", n, (1, 2, 4), lambda grid: lab.floats(grid * n * 16), f"bytes={n * 16}")


def _rounds(
    lab: Lab,
    probe: Probe,
    name: str,
    n: int,
    blocks: tuple[int, ...],
    data: Callable[[int], torch.Tensor],
    workload: str,
) -> Measured:
    """Sweep kernels that read a small buffer for a number of rounds."""

    def cells() -> Iterable[Cell]:
        for unroll in (1, 2, 4):
            kernel = lab.kernel(probe, f"{name}<{unroll}>")
            for per_sm in blocks:
                grid = lab.sms * per_sm
                x = data(grid)

                def go(rounds: int, clocks: Any, kernel: Any = kernel, grid: int = grid, x: Any = x) -> None:
                    kernel(grid, THREADS, x, n, rounds, key(), lab.sink, clocks)

                rounds = lab.rounds(go)
                work = 16.0 * grid * THREADS * unroll * rounds
                about = {"unroll": unroll, "blocks_per_sm": per_sm}
                yield about, work, lambda clocks, go=go, rounds=rounds: go(rounds, clocks)  # type: ignore[misc]

    return best_of(lab, cells(), workload)


def _shared(lab: Lab, probe: Probe) -> Measured:
    x = lab.floats(32 << 10)

    def cells() -> Iterable[Cell]:
        for unroll in (2, 4, 8):
            kernel = lab.kernel(probe, f"read_shared<{unroll}>")
            for threads, per_sm in ((512, 1), (1024, 1), (512, 2), (1024, 2)):
                grid = lab.sms * per_sm

                def go(rounds: int, clocks: Any, k: Any = kernel, grid: int = grid, threads: int = threads) -> None:
                    k(grid, threads, x, rounds, key(), lab.sink, clocks)

                rounds = lab.rounds(go)
                about = {"unroll": unroll, "blocks_per_sm": per_sm, "threads": threads}
                work = 16.0 * grid * threads * unroll * rounds
                yield about, work, lambda clocks, go=go, rounds=rounds: go(rounds, clocks)  # type: ignore[misc]

    return best_of(lab, cells(), f"bytes={32 << 10}")


def _probe(key_: str, says: str, name: str, proofs: dict[int, Proof], measure: Any) -> Probe:
    return Probe(
        key_, "bandwidth", "B/s", says, "bandwidth.cu", {f"{name}<{u}>": proof for u, proof in proofs.items()}, measure
    )


_LOAD, _STORE = "LDG.E.128*", "STG.E.128*"

PROBES = (
    _probe("dram.read", "4 GiB read once", "read", {u: Proof({_LOAD: u}) for u in UNROLLS}, _read),
    _probe("dram.write", "4 GiB written once", "write", {u: Proof({_STORE: u}) for u in UNROLLS}, _write),
    _probe(
        "dram.copy", "4 GiB copied: read and written", "copy", {u: Proof({_LOAD: u, _STORE: u}) for u in UNROLLS}, _copy
    ),
    _probe(
        "dram.triad",
        "a = b + s·c over 4 GiB each",
        "triad",
        {u: Proof({_LOAD: 2 * u, _STORE: u, "FFMA*": 4 * u}) for u in UNROLLS},
        _triad,
    ),
    _probe(
        "l2.read",
        "a third of L2, read past L1 by every block",
        "read_l2",
        {u: Proof({"LDG.E.128.STRONG.GPU*": u}) for u in (1, 2, 4)},
        _l2,
    ),
    _probe(
        "l1.read",
        "32 KiB per block, read again and again",
        "read_l1",
        {u: Proof({"LDG.E.128": u}) for u in (1, 2, 4)},
        _l1,
    ),
    _probe(
        "shared.read",
        "32 KiB of shared memory per block, without bank conflicts",
        "read_shared",
        {u: Proof({"LDS.128": u}) for u in (2, 4, 8)},
        _shared,
    ),
)
