"""One way to compute an op, in one language, addressed as `op/backend` or `op/backend:variant`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from assay.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
PREPARED = "prepared"
"""The parameter by which a kernel gets what its `prepare` returned."""
BACKENDS = ("torch", "inductor", "triton", "cuda", "cupy", "numba", "njit")


@dataclass(frozen=True)
class Address:
    op: str
    backend: str
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.op}/{self.backend}" + (f":{self.variant}" if self.variant else "")


def address(text: str) -> Address:
    match = re.fullmatch(r"(\w+)/(\w+)(?::(\w+))?", text)
    if not match:
        raise UsageError(
            f"'{text}' is not a kernel's address", fix="write it as op/backend or op/backend:variant, e.g. gelu/triton"
        )
    return Address(match[1], match[2], match[3] or "")


@dataclass(frozen=True)
class Kernel:
    address: Address
    file: Path | None
    """Where it is written; None when derived from the op's reference."""
    function: str = ""
    line: int = 0
    tune: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """The space of parameters; defaults stand in the signature."""
    fits: str = ""
    """Which configurations of that space are valid: `BLOCK >= 32 * num_warps` (assay.catalog.constraint)."""
    scratch: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Work space the harness allocates: name → (dtype, size, size, …), sizes being numbers or the op's axes."""
    dtypes: tuple[str, ...] = ()
    """What it can do; empty: all that the op declares."""
    parameters: tuple[str, ...] = ()
    """Names in its signature, read from the source."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Of a derived variant: the values of those parameters in which it differs from the kernel as written."""
    returns: bool = False
    """It can only return its result (the outputs that are not optional); the allocation is noted in the record."""
    needs: str = ""
    """The distribution whose kernel it calls: a peer, which may refuse workloads (`Unsupported`)."""
    prepare: str = ""
    """Of a peer: the function of its file whose result every call gets as `prepared`. It reads the op's constant inputs
    alone, and runs outside the timed region whenever they change."""
    prepares: tuple[str, ...] = ()
    """Names in that function's signature, read from the source."""
    requires: tuple[str, ...] = ()
    """Inputs that the op may leave out and this kernel may not."""
    most: Mapping[str, int] = field(default_factory=dict)
    """Axes along which it takes less than the op allows."""
    expects: Mapping[str, Any] = field(default_factory=dict)
    """What its machine code must be (assay.inspect.gates)."""
    launches: tuple[tuple[int, str], ...] = ()
    """A bare .cu file's launch comments, with their lines."""
    op_file: Path | None = None
    """The file that declares its op, where the kernel says so (`@kernel("op.py:relu")`) or is derived from that op."""

    @property
    def name(self) -> str:
        return str(self.address)

    @property
    def home(self) -> Path | None:
        """The file to open: its own, or that of the user's op it is derived from. None: derived from the library's."""
        return self.file or self.op_file

    @property
    def peer(self) -> bool:
        """Whether the code is not written here: a call into another project, what torch.compile generates, or the op's
        reference as PyTorch computes it."""
        derived = self.file is None and self.address.backend == "torch"
        return bool(self.needs) or self.address.backend == "inductor" or derived

    @property
    def asks(self) -> tuple[str, ...]:
        """What its function takes, and what its preparation takes."""
        return *self.parameters, *self.prepares

    @property
    def identity(self) -> str:
        """What tells it from every other kernel: its address and its home. Two files may use the same address."""
        return f"{self.name} in {self.home}" if self.home else self.name

    def __str__(self) -> str:
        return self.name

    def to_dict(self) -> dict[str, Any]:
        """What another process needs to find the kernel and call it; plain data, for `from_dict`."""
        return {
            "address": self.name,
            "file": str(self.file or ""),
            "function": self.function,
            "line": self.line,
            "scratch": {name: list(spec) for name, spec in self.scratch.items()},
            "parameters": list(self.parameters),
            "fixed": dict(self.fixed),
            "returns": self.returns,
            "prepare": self.prepare,
            "prepares": list(self.prepares),
            "launches": [list(launch) for launch in self.launches],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Kernel:
        return cls(
            address(data["address"]),
            Path(data["file"]) if data["file"] else None,
            data["function"],
            data["line"],
            scratch=data["scratch"],
            parameters=tuple(data["parameters"]),
            fixed=data["fixed"],
            returns=data["returns"],
            prepare=data["prepare"],
            prepares=tuple(data["prepares"]),
            launches=tuple((int(line), text) for line, text in data["launches"]),
        )


@dataclass(frozen=True)
class Declaration:
    """The arguments of `@kernel(...)`."""

    op: str
    backend: str = ""
    variant: str = ""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tune: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    scratch: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ()
    returns: bool = False
    needs: str = ""
    prepare: str = ""
    requires: tuple[str, ...] = ()
    most: Mapping[str, int] = field(default_factory=dict)
    expects: Mapping[str, Any] = field(default_factory=dict)
    fits: str = ""


def kernel(
    op: str,
    *,
    backend: str = "",
    variant: str = "",
    variants: Mapping[str, Mapping[str, Any]] | None = None,
    tune: Mapping[str, Sequence[Any]] | None = None,
    scratch: Mapping[str, Sequence[Any]] | None = None,
    dtypes: Sequence[str] = (),
    returns: bool = False,
    needs: str = "",
    prepare: str = "",
    requires: Sequence[str] = (),
    most: Mapping[str, int] | None = None,
    expects: Mapping[str, Any] | None = None,
    fits: str = "",
) -> Callable[[F], F]:
    """Mark a function as a kernel of `op`: a name, or `FILE:NAME` for an op that another file declares, the path taken
    from this file's folder. It is called with the op's inputs by position and, by name, whichever
    attributes, outputs and scratch tensors its signature asks for. `variants` derives further kernels that
    differ in the values of parameters: `{"parallel": {"parallel": True}}`. `tune` lists the values that `assay tune`
    may try for parameters with a default, and `fits` says which combinations are valid:
    `"BLOCK >= 32 * num_warps"`."""
    declaration = Declaration(
        op,
        backend,
        variant,
        variants or {},
        tune or {},
        scratch or {},
        tuple(dtypes),
        returns,
        needs,
        prepare,
        tuple(requires),
        most or {},
        expects or {},
        fits,
    )

    def mark(function: F) -> F:
        function.__assay__ = declaration  # type: ignore[attr-defined]
        return function

    return mark
