"""Measures operations per second of the vector units per dtype, and of the special-function unit, over ILP × warps."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from assay.machine.lab import f32, key
from assay.machine.probe import Measured, Probe
from assay.machine.probes.bandwidth import Cell, best_of
from assay.machine.proof import Proof

if TYPE_CHECKING:
    from assay.machine.lab import Lab

ILPS = (1, 2, 4, 8)
WARPS = (4, 8, 16, 32)
"""Warps per multiprocessor."""
PER_TURN, MUFU_PER_TURN = 512, 64

DTYPES = {
    "fp64": ("DFMA", 2),
    "fp32": ("FFMA", 2),
    "fp16": ("HFMA2*", 4),
    "bf16": ("HFMA2*BF16*", 4),
    "int32": ("IMAD", 2),
}
"""The instruction and its operations per thread: a fused multiply-add counts as two, one on a pair as four."""
FUNCTIONS = {
    "ex2": ("ex2", "MUFU.EX2"),
    "lg2": ("lg2", "MUFU.LG2"),
    "rsq": ("rsq", "MUFU.RSQ"),
    "sqrt": ("sqrt_", "MUFU.SQRT"),
    "tanh": ("tanh_", "MUFU.TANH"),
    "sin": ("sin_", "MUFU.SIN"),
}


def sweep(lab: Lab, probe: Probe, template: str, operations: float, arguments: tuple[Any, ...]) -> Measured:
    def cells() -> Iterable[Cell]:
        for ilp in ILPS:
            kernel = lab.kernel(probe, f"{template}{ilp}>")
            for warps in WARPS:

                def go(rounds: int, clocks: Any, kernel: Any = kernel, threads: int = warps * 32) -> None:
                    kernel(lab.sms, threads, *arguments, rounds, key(), lab.sink, clocks)

                rounds = lab.rounds(go)
                work = float(lab.sms * warps * 32) * operations * rounds
                about = {"ilp": ilp, "warps_per_sm": warps}
                yield about, work, lambda clocks, go=go, rounds=rounds: go(rounds, clocks)  # type: ignore[misc]

    return best_of(lab, cells(), f"sms={lab.sms}")


def _fma(lab: Lab, probe: Probe, dtype: str) -> Measured:
    operations = DTYPES[dtype][1] * PER_TURN
    return sweep(lab, probe, f"fma_peak<{dtype}, ", operations, (f32(0.9375), f32(0.0625)))


def _mufu(lab: Lab, probe: Probe, function: str) -> Measured:
    return sweep(lab, probe, f"mufu_peak<{FUNCTIONS[function][0]}, ", MUFU_PER_TURN, (f32(0.0625),))


def _mufu_proof(name: str) -> Proof:
    if name == "MUFU.SIN":  # the instruction takes turns, not radians
        return Proof({name: MUFU_PER_TURN, "FMUL*": MUFU_PER_TURN}, others=8)
    return Proof({name: MUFU_PER_TURN}, others=8)


PROBES = tuple(
    Probe(
        f"vector.{dtype}",
        "vector",
        "op/s",
        f"independent chains of {instruction.rstrip('*')}",
        "vector.cu",
        {f"fma_peak<{dtype}, {ilp}>": Proof({instruction: PER_TURN}, others=8) for ilp in ILPS},
        partial(_fma, dtype=dtype),
    )
    for dtype, (instruction, _) in DTYPES.items()
) + tuple(
    Probe(
        f"mufu.{name}",
        "mufu",
        "op/s",
        f"{instruction} on its own result",
        "vector.cu",
        {f"mufu_peak<{struct}, {ilp}>": _mufu_proof(instruction) for ilp in ILPS},
        partial(_mufu, function=name),
    )
    for name, (struct, instruction) in FUNCTIONS.items()
)
