"""Parses the output of compute-sanitizer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

_SIZE = r" of size (?P<bytes>[\d,]+) bytes?"
_HEADS = {
    r"(?P<kind>Invalid __\w+__ (?P<access>read|write|atomic))" + _SIZE: "memcheck",
    r"(?P<kind>Uninitialized __\w+__ memory (?P<access>read))" + _SIZE: "initcheck",
    r"\w+: (?P<kind>Race) reported between (?P<access>Read|Write|Atomic)\w* access at(?P<at>.*)": "racecheck",
    r"\w+: (?:\(.*?\) )?Potential (?P<kind>\w+ hazard) detected at \w+ (?P<address>0x\w+)": "racecheck",
    r"(?P<kind>Barrier error detected\..*)": "synccheck",
}
"""The first line of each kind of report. Other reports (`Program hit cudaError…`) are consequences of these."""
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: ([\d,]+) ")
_TROUBLE = re.compile(
    r"Internal Sanitizer Error|Internal Error|Device not supported|timed.?out|Unable to|No attachable process"
    r"|didn't (?:track|terminate)"
)


@dataclass(frozen=True)
class Problem:
    """One kind of error at one place in one kernel."""

    tool: str
    """memcheck, racecheck, initcheck or synccheck."""
    kind: str
    """In the tool's words: `Invalid __global__ read`, `Barrier error detected. …`."""
    kernel: str = ""
    where: str = ""
    """File and line of the kernel's source, if the kernel was built with them."""
    access: str = ""
    bytes: int = 0
    """Size of one access; 0 if the tool does not say."""
    address: str = ""
    beyond: int = 0
    """Bytes between the access and the nearest allocation; 0 if the tool does not say."""
    count: int = 1
    """The number of reports joined into this one, or of a race's hazards."""
    text: str = ""
    """The first report, as printed."""

    def __str__(self) -> str:
        size = f" of {self.bytes} bytes" if self.bytes else ""
        inside = f" in {self.kernel}" if self.kernel else ""
        at = f" at {self.where}" if self.where else ""
        far = f", {self.beyond} bytes from the nearest allocation" if self.beyond else ""
        times = f" ({self.count}×)" if self.count > 1 else ""
        return f"{self.tool}: {self.kind}{size}{inside}{at}{far}{times}"


@dataclass(frozen=True)
class Parsed:
    problems: tuple[Problem, ...]
    total: int | None
    """The count in the tool's last line; None if that line is missing because the tool did not finish."""
    trouble: str = ""
    """The tool's own error message, if it could not work."""


def parse(text: str) -> Parsed:
    """Return the problems in a log. Reports of the same kind at the same place are joined."""
    joined: dict[tuple[str, ...], Problem] = {}
    for block in _blocks(text):
        if problem := _problem(block):
            key = (problem.tool, problem.kind, problem.kernel, problem.where)
            seen = joined.get(key)
            joined[key] = replace(seen, count=seen.count + problem.count) if seen else problem
    summary = _SUMMARY.search(text)
    troubles = [line.lstrip("= ") for line in text.splitlines() if _TROUBLE.search(line)]
    return Parsed(tuple(joined.values()), _number(summary[1]) if summary else None, troubles[0] if troubles else "")


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines of each report. The first line starts at the margin; the lines that belong to it are indented."""
    block: list[str] = []
    for line in text.splitlines():
        if not line.startswith("========="):
            continue
        body = line[9:].rstrip()
        if block and body.startswith(("  ", "\t", " and ")):
            block.append(body.strip())
            continue
        if block:
            yield block
        block = [body.strip()] if body.strip() else []
    if block:
        yield block


def _problem(block: list[str]) -> Problem | None:
    matches = ((tool, re.match(pattern, block[0])) for pattern, tool in _HEADS.items())
    tool, head = next(((tool, m) for tool, m in matches if m), ("", None))
    if head is None:
        return None
    fields = {k: v.strip() for k, v in head.groupdict().items() if v}
    rest = "\n".join(block[1:])
    kind = fields["kind"]
    if kind == "Race":
        between = re.findall(r"(?:between|and) (\w+) access", "\n".join(block))
        kind += f" between {' and '.join(dict.fromkeys(w.lower() for w in between))}"
        place = fields.get("at") or block[1]  # a long name is on a line of its own
    else:
        place = next((line[3:] for line in block[1:] if line.startswith("at ")), "")
    kernel, where = _place(place)
    address = re.search(r"(?:Address|Access to) (0x[0-9a-f]+)", rest)
    beyond = re.search(r"is ([\d,]+) bytes (?:after|before) the nearest", rest)
    hazards = [_number(n) for n in re.findall(r"\[([\d,]+) hazards?\]", rest)]
    return Problem(
        tool,
        kind,
        kernel,
        where,
        fields.get("access", "").lower(),
        _number(fields.get("bytes", "0")),
        fields.get("address") or (address[1] if address else ""),
        _number(beyond[1]) if beyond else 0,
        sum(hazards) or 1,
        "\n".join(block),
    )


def _place(text: str) -> tuple[str, str]:
    """Return kernel and source line from `name(args)+0x70 in file.cu:6` or the older `0x70 in file.cu:6:name(args)`."""
    if old := re.match(r"0x[0-9a-f]+ in (?:(?P<where>.*?:\d+):)?(?P<kernel>.+)$", text):
        return _name(old["kernel"]), old["where"] or ""
    if new := re.match(r"(?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<where>\S+))?", text):
        return _name(new["kernel"]), new["where"] or ""
    return _name(text), ""


def _name(signature: str) -> str:
    """`void silu<(bool)0>(const float *, float *)` → `silu<(bool)0>`."""
    depth = 0
    for at, letter in enumerate(signature):
        if letter == "(" and depth == 0 and at:
            return signature[:at].removeprefix("void ").strip()
        depth += (letter == "<") - (letter == ">")
    return signature.removeprefix("void ").strip()


def _number(text: str) -> int:
    return int(text.replace(",", ""))
