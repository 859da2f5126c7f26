"""The capacity of a multiprocessor for each compute capability, from the CUDA C++ Programming Guide."""

from dataclasses import dataclass

from assay.target import Target


@dataclass(frozen=True)
class Chip:
    threads: int
    """Most threads that are resident on a multiprocessor."""
    blocks: int
    shared: int
    """Bytes of shared memory for all blocks together."""
    shared_per_block: int
    """Most bytes of shared memory that one block may request explicitly."""
    registers: int = 65536
    registers_per_thread: int = 255
    reserved: int = 1024
    """Bytes of shared memory that the system reserves in each block."""


_K = 1024
CHIPS = {
    (8, 0): Chip(2048, 32, 164 * _K, 163 * _K),
    (8, 6): Chip(1536, 16, 100 * _K, 99 * _K),
    (8, 7): Chip(1536, 16, 164 * _K, 163 * _K),
    (8, 9): Chip(1536, 24, 100 * _K, 99 * _K),
    (9, 0): Chip(2048, 32, 228 * _K, 227 * _K),
    (10, 0): Chip(2048, 32, 228 * _K, 227 * _K),
    (10, 3): Chip(2048, 32, 228 * _K, 227 * _K),
    (12, 0): Chip(1536, 24, 100 * _K, 99 * _K),
    (12, 1): Chip(1536, 24, 100 * _K, 99 * _K),
}


def chip(target: Target) -> Chip | None:
    return CHIPS.get(target.capability)
