"""Measures multiply-adds per second in full-width vectors, on all threads. The compiled loop is checked first."""

from __future__ import annotations

import re
import time
from typing import Any

from assay.errors import AssayError
from assay.machine.cpu import cores
from assay.machine.cpu.cores import REPEATS
from assay.machine.evidence import Proven
from assay.machine.probe import Measured

CHAINS_WIDE, CHAINS = 24, 12
"""Independent accumulators if the CPU has 32 vector registers, and if it has 16."""
PER_TURN = 4
"""Multiply-adds of each accumulator per turn of the loop."""


def vector_bits() -> int:
    """Return the width of this CPU's widest vectors with multiply-add."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return 512 if features.get("avx512f") else 256 if features.get("avx2") and features.get("fma") else 128


def chains() -> int:
    import platform

    return CHAINS_WIDE if vector_bits() == 512 or platform.machine() == "aarch64" else CHAINS


def build(bits: int) -> Any:
    """Build the loop directly from vector instructions, since LLVM's vectoriser prefers narrower vectors on some
    CPUs."""
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    element = types.float32 if bits == 32 else types.float64
    scalar = ir.FloatType() if bits == 32 else ir.DoubleType()
    lanes = vector_bits() // bits
    vector = ir.VectorType(scalar, lanes)

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def accumulate(typing_context, rounds, b, c):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            turns, *numbers = arguments
            factor, term = (cgutils.alloca_once(builder, vector) for _ in range(2))
            for place, number in zip((factor, term), numbers, strict=True):
                whole = ir.Constant(vector, ir.Undefined)
                for lane in range(lanes):
                    whole = builder.insert_element(whole, number, ir.Constant(ir.IntType(32), lane))
                builder.store(whole, place)
            places = []
            for chain in range(chains()):
                places.append(cgutils.alloca_once(builder, vector))
                first = [0.001 * (chain + 1) + 0.01 * lane for lane in range(lanes)]
                builder.store(ir.Constant(vector, [ir.Constant(scalar, v) for v in first]), places[-1])
            fma = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{lanes}f{bits}"
            )
            with cgutils.for_range(builder, turns):
                for _ in range(PER_TURN):
                    for place in places:
                        product = [builder.load(factor), builder.load(term)]
                        builder.store(builder.call(fma, [*product, builder.load(place)]), place)
            total = builder.load(places[0])
            for place in places[1:]:
                total = builder.fadd(total, builder.load(place))
            result = builder.extract_element(total, ir.Constant(ir.IntType(32), 0))
            for lane in range(1, lanes):
                result = builder.fadd(result, builder.extract_element(total, ir.Constant(ir.IntType(32), lane)))
            return result

        return element(types.int64, element, element), generate

    def loop(rounds, b, c):  # type: ignore[no-untyped-def]
        return accumulate(rounds, b, c)

    import numba

    return numba.njit(element(types.int64, element, element), nogil=True)(loop)


def prove(assembly: str, bits: int) -> Proven:
    """Raise AssayError unless every multiply-add of the compiled loop is one vector instruction of full width."""
    letter = {32: "s", 64: "d"}[bits]
    register = {512: "zmm", 256: "ymm", 128: "xmm"}[vector_bits()]
    wide = re.compile(rf"^\s*vfmadd\d+p{letter}\s.*%?{register}\d+|^\s*fmla\s+v\d+\.\d{letter}", re.MULTILINE)
    narrow = re.compile(r"^\s*vfmadd\d+s[sd]\s|^\s*fmadd\s|\bcallq?\s+\S*fma[f(]?\b", re.MULTILINE)
    lines, wanted = assembly.splitlines(), chains() * PER_TURN
    body = max(_loops(lines), key=lambda b: len(wide.findall("\n".join(b))), default=[])
    fused = wide.findall("\n".join(body))
    if len(fused) < wanted or len(fused) % wanted:
        raise AssayError(f"the compiled loop holds {len(fused)} vector multiply-adds, not {wanted} (or a multiple)")
    if bad := narrow.findall("\n".join(body)):
        raise AssayError(f"the compiled loop holds narrower multiply-adds: {bad[0].strip()}")
    name = fused[0].split()[0]
    says = f"{len(fused)} vector multiply-adds of {vector_bits()} bits in the loop: {name}"
    return Proven(says, held=True)


def _loops(lines: list[str]) -> list[list[str]]:
    """Return, for each backward branch, the lines from its label to the branch."""
    labels = {m[1]: i for i, line in enumerate(lines) if (m := re.match(r"^(\.?L\w+):", line))}
    bodies = []
    for i, line in enumerate(lines):
        branch = re.match(r"^\s*(?:j\w+|b(?:\.\w+)?|cbn?z\s+\w+,|tbn?z\s.*,)\s+(\.?L\w+)\s*$", line)
        if branch and labels.get(branch[1], i) < i:
            bodies.append(lines[labels[branch[1]] : i + 1])
    return bodies


def measure(bits: int) -> Measured:
    import numpy as np

    loop = build(bits)
    proof = prove(next(iter(loop.inspect_asm().values())), bits)
    kind = np.float32 if bits == 32 else np.float64
    b, c = kind(0.9375), kind(0.0625)
    start = time.perf_counter()
    loop(20_000, b, c)
    rounds = int(20_000 * 0.1 / (time.perf_counter() - start))
    work = 2 * PER_TURN * chains() * (vector_bits() // bits) * rounds * cores.threads()
    pieces = [rounds] * cores.threads()
    seconds = [cores.side_by_side(lambda n: loop(n, b, c), pieces) for _ in range(REPEATS + 1)]
    return Measured(
        [work / s for s in seconds[1:]],
        workload=f"threads={cores.threads()}",
        more={"proof": proof, "threads": cores.threads()},
    )
