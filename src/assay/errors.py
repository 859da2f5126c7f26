"""Errors that tell the reader what to do."""


class AssayError(Exception):
    """An error that the user can fix: what is wrong, where, and what to do about it."""

    def __init__(self, what: str, *, fix: str = "", where: str = "") -> None:
        self.what, self.fix, self.where = what, fix, where
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  → {self.fix}" if self.fix else text


class UsageError(AssayError):
    """Wrong use of a verb: no such op, a malformed workload, a bad flag. Exit code 2."""


class SourceError(AssayError):
    """A kernel's own source is wrong: syntax, signature, a compiler's complaint. Exit code 2 when asked for by name."""


class BuildError(SourceError):
    """A toolchain refused the source. `what` is the toolchain's own text."""


class LaunchError(SourceError):
    """The arguments of a launch do not fit the parameters of its kernel, or its grid its clusters; or the target has no
    clusters."""


class Lacking(AssayError):
    """Something is missing on this machine: a package, data, room on the disk. The kernel or model did not fail."""


class Unsupported(AssayError):
    """A peer does not support this workload on this device. `what` is the library's own reason."""


class MalformedError(AssayError):
    """A file of machine code is cut short, damaged, or of another kind."""
