"""Measures operations per second of the tensor cores on random data, with mma.sync and with wgmma."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from assay.machine.lab import key
from assay.machine.probe import Measured, Probe
from assay.machine.probes.bandwidth import Cell, best_of
from assay.machine.proof import Proof

if TYPE_CHECKING:
    import torch

    from assay.machine.lab import Lab

ILPS = (1, 2, 4, 8)
WARPS = (4, 8, 16)
PER_TURN, WGMMA_PER_TURN = 32, 8

MMA = {
    "fp16": ("HMMA.16816.F32", 16),
    "bf16": ("HMMA.16816.F32.BF16", 16),
    "tf32": ("HMMA.1688.F32.TF32", 8),
    "fp8": ("QMMA.16832.F32.E4M3.E4M3", 32),
    "int8": ("IMMA.16832.S8.S8", 32),
}
"""The instruction and its depth along K; each computes 16 × 8 results."""
WGMMA = {
    "fp16": ("HGMMA.64x256x16.F32", 16),
    "bf16": ("HGMMA.64x256x16.F32.BF16", 16),
    "tf32": ("HGMMA.64x256x8.F32.TF32", 8),
    "fp8": ("QGMMA.64x256x32.F32.E4M3.E4M3", 32),
    "int8": ("IGMMA.64x256x32.S8.S8", 32),
}
"""The instruction and its depth along K; each computes 64 × 256 results."""
GROUPS = ((1, 1), (1, 2), (1, 3), (2, 1), (3, 1))
"""Warpgroups per block and blocks per multiprocessor."""


def random(dtype: str, bytes_: int) -> torch.Tensor:
    """Return random finite numbers as bytes: zeros would draw less power and run faster than real data."""
    import torch

    if dtype == "int8":
        return torch.randint(-128, 128, (bytes_,), dtype=torch.int8, device="cuda")
    kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "fp8": torch.float8_e4m3fn}
    kind = kinds[dtype]
    numbers = torch.randn(bytes_ // kind.itemsize, device="cuda")
    if dtype == "tf32":  # tf32 does not use the low 13 bits of a float32
        numbers = (numbers.view(torch.int32) & ~0x1FFF).view(torch.float32)
    return numbers.to(kind).view(torch.uint8)


def _mma(lab: Lab, probe: Probe, dtype: str) -> Measured:
    x = random(dtype, max(WARPS) * 32 * 6 * 4)
    operations = 2 * 16 * 8 * MMA[dtype][1] * PER_TURN

    def cells() -> Iterable[Cell]:
        for ilp in ILPS:
            kernel = lab.kernel(probe, f"mma_peak<{dtype}, {ilp}>")
            for warps in WARPS:

                def go(rounds: int, clocks: Any, kernel: Any = kernel, threads: int = warps * 32) -> None:
                    kernel(lab.sms, threads, x, rounds, key(), lab.sink, clocks)

                rounds = lab.rounds(go)
                work = float(lab.sms * warps) * operations * rounds
                about = {"ilp": ilp, "warps_per_sm": warps}
                yield about, work, lambda clocks, go=go, rounds=rounds: go(rounds, clocks)  # type: ignore[misc]

    return best_of(lab, cells(), f"sms={lab.sms}")


def _wgmma(lab: Lab, probe: Probe, dtype: str) -> Measured:
    most = max(groups for groups, _ in GROUPS)
    x = random(dtype, (most * 64 + 256) * 128)
    operations = 2 * 64 * 256 * WGMMA[dtype][1] * WGMMA_PER_TURN

    def cells() -> Iterable[Cell]:
        for groups, blocks in GROUPS:
            kernel = lab.kernel(probe, f"wgmma_peak<{dtype}, {groups}>")
            shared = (groups * 64 + 256) * 128 + 1024
            grid = lab.sms * blocks

            def go(
                rounds: int,
                clocks: Any,
                kernel: Any = kernel,
                grid: int = grid,
                groups: int = groups,
                shared: int = shared,
            ) -> None:
                kernel(grid, groups * 128, x, rounds, key(), lab.sink, clocks, shared=shared)

            rounds = lab.rounds(go)
            work = float(grid * groups) * operations * rounds
            about = {"warpgroups": groups, "blocks_per_sm": blocks}
            yield about, work, lambda clocks, go=go, rounds=rounds: go(rounds, clocks)  # type: ignore[misc]

    return best_of(lab, cells(), f"sms={lab.sms}")


_FP8: dict[str, Any] = {
    "least": (8, 9),
    "only": ("sm_89", "sm_120", "sm_120a", "sm_121", "sm_121a"),
    "lacks": "its compiler turns mma.sync on fp8 into conversions and fp16 HMMA",
}

PROBES = tuple(
    Probe(
        f"tensor.mma.{dtype}",
        "tensor",
        "op/s",
        f"mma.sync, {instruction}",
        "tensor_mma.cu",
        {f"mma_peak<{dtype}, {ilp}>": Proof({instruction: PER_TURN}, others=8) for ilp in ILPS},
        partial(_mma, dtype=dtype),
        **(_FP8 if dtype == "fp8" else {}),
    )
    for dtype, (instruction, _) in MMA.items()
) + tuple(
    Probe(
        f"tensor.wgmma.{dtype}",
        "tensor",
        "op/s",
        f"wgmma, both operands in shared memory, {instruction}",
        "tensor_wgmma.cu",
        {
            f"wgmma_peak<{dtype}, {g}>": Proof({instruction: WGMMA_PER_TURN}, others=64)
            for g in sorted({g for g, _ in GROUPS})
        },
        partial(_wgmma, dtype=dtype),
        only=("sm_90a",),
        lacks="wgmma is Hopper's alone",
    )
    for dtype, (instruction, _) in WGMMA.items()
)
