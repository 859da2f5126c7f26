"""Parses SASS, the machine code of an NVIDIA GPU, from nvdisasm's listing into instructions, labels and loops."""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from assay import tool
from assay.errors import MalformedError
from assay.isa import cubin as cubins

FLAGS = ("-c", "-g", "-gi", "-gp", "-hex")
"""Code only; source lines, chains of inlining and PTX lines as comments; the encoding next to each instruction."""


_PTX = ".nv_debug_ptx"
"""The file name that the listing uses for the PTX text inside the cubin."""

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_OTHER_SECTION = re.compile(r"^\s*\.section\s")
_LABEL = re.compile(r"^([.$\w]+):\s*$")
_PLACE = re.compile(r'^\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)(?P<inlined> inlined at )?')
_LINE = re.compile(r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<rest>\S.*)$")
_ENCODING = re.compile(r"/\*\s*0x(?P<word>[0-9a-f]{16})\s*\*/\s*$")
_HIGH_WORD = re.compile(r"^\s*/\*\s*0x(?P<word>[0-9a-f]{16})\s*\*/\s*$")
_BODY = re.compile(r"^(?:\{\s*)?(?:(?P<predicate>@!?U?P[T\d]+)\s+)?(?P<name>[A-Z][\w.]*)\s*(?P<operands>.*)$")
_NOTE = re.compile(r"\(\*.*?\*\)")
_TARGET = re.compile(r"`\(([^)]+)\)")
_TABLE = re.compile(r'BRANCH_TARGETS ([^"]+)"')

_OPEN, _CLOSE = "([{", ")]}"
_ONLY_NAME = ("CALL", "RET", "BSSY", "LEPC", "WARPSYNC")
"""Opcodes that name a label but do not branch to it within the function: BSSY gives the address where threads
reconverge, LEPC loads the address as a value, WARPSYNC continues at the next instruction."""
_ENDS = ("EXIT", "RET", "BRX", "BRXU", "JMX", "JMXU")


@dataclass(frozen=True)
class Place:
    file: str
    line: int


@dataclass(frozen=True)
class Instruction:
    address: int
    predicate: str
    """`@P0`, `@!UP1`; empty if the instruction always runs."""
    opcode: str
    """`LDG`"""
    modifiers: tuple[str, ...]
    """`("E", "128")`"""
    operands: tuple[str, ...]
    text: str
    """The text in the listing, without comments: `@!P0 LDG.E.128 R4, desc[UR6][R8.64]`."""
    targets: tuple[str, ...] = ()
    """Labels named in the instruction."""
    source: Place | None = None
    inlined: tuple[Place, ...] = ()
    """The places where that source line was inlined, innermost caller first."""
    ptx: int | None = None
    """Line of the PTX inside the cubin."""
    encoding: tuple[int, int] | None = None
    """Low and high 64-bit words."""

    @property
    def name(self) -> str:
        """`LDG.E.128`"""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True)
class Loop:
    start: int
    """Address of the first instruction."""
    end: int
    """Address of the branch back."""
    instructions: tuple[Instruction, ...] = field(repr=False)


@dataclass(frozen=True)
class Function:
    """One kernel's .text section, including the device functions that the compiler placed in it."""

    symbol: str
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    """The address of each label."""

    @cached_property
    def index(self) -> dict[int, int]:
        """The position of each instruction by its address."""
        return {instruction.address: i for i, instruction in enumerate(self.instructions)}

    def goes_to(self, instruction: Instruction) -> tuple[int, ...]:
        """Return the addresses within this function that the instruction may branch to."""
        if instruction.opcode in _ONLY_NAME:
            return ()
        if instruction.opcode == "BSYNC":
            return self._meetings[instruction.address]
        return tuple(self.labels[label] for label in instruction.targets if self.labels.get(label) in self.index)

    @cached_property
    def _meetings(self) -> dict[int, tuple[int, ...]]:
        """For each BSYNC's address, the address where the threads that reconverge there continue. It is given by the
        last preceding BSSY on the same barrier, since barrier numbers are reused."""
        by_barrier: dict[str, tuple[int, ...]] = {}
        meetings = {}
        for i in self.instructions:
            if i.opcode == "BSSY":
                by_barrier[i.operands[0]] = tuple(self.labels[t] for t in i.targets if t in self.labels)
            elif i.opcode == "BSYNC":
                meetings[i.address] = tuple(a for a in by_barrier.get(i.operands[0], ()) if a > i.address)
        return meetings

    def follows(self, instruction: Instruction) -> tuple[int, ...]:
        """Return the addresses of the instructions that may run next."""
        addresses = list(self.goes_to(instruction))
        next_one = self.index[instruction.address] + 1
        always = not instruction.predicate and (
            instruction.opcode in _ENDS or (instruction.opcode in ("BRA", "JMP") and len(instruction.operands) == 1)
        )
        if not always and next_one < len(self.instructions):
            addresses.append(self.instructions[next_one].address)
        return tuple(addresses)

    def between(self, start: int, end: int) -> tuple[Instruction, ...]:
        """Return the instructions from one address to another, inclusive."""
        return tuple(i for i in self.instructions if start <= i.address <= end)


def disassemble(cubin: bytes, limit: float = 120) -> dict[str, Function]:
    """Return every kernel of a cubin, by symbol. Needs nvdisasm, but no GPU. `limit` is in seconds."""
    nvdisasm = tool.path("nvdisasm")
    built_for = cubins.target(cubin)  # raises a clear error if the file is not a cubin
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        size, fix = f"{len(cubin):,} bytes", "give it fewer kernels at once"
        ran = tool.call([nvdisasm, *FLAGS, file.name], limit=limit, on=size, fix=fix)
    if ran.code:
        newer = f"a newer one may know {built_for} ({tool.INSTALL['nvdisasm']} --upgrade)"
        raise MalformedError(
            f"nvdisasm cannot read this code for {built_for}: {ran.complaint.replace(file.name, 'the cubin')}",
            fix=f"{newer}; else the cubin is damaged: build it again",
        )
    try:
        return read(ran.stdout)
    except (ValueError, IndexError) as problem:
        raise MalformedError(
            f"what nvdisasm made of this code for {built_for} is no listing: {problem}", fix="build the cubin again"
        ) from None


def read(listing: str) -> dict[str, Function]:
    """Return every function of an nvdisasm listing, by symbol."""
    functions: dict[str, Function] = {}
    for symbol, lines in _sections(listing):
        reader = _Reader()
        for line in lines:
            reader.take(line)
        functions[symbol] = Function(symbol, tuple(reader.instructions), reader.labels)
    return functions


def split_operands(text: str) -> tuple[str, ...]:
    """Split the text at commas outside brackets: `R4, desc[UR6][R8.64+0x10], c[0x0][0x28]` → three."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in _OPEN:
            depth += 1
        elif letter in _CLOSE:
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return tuple([*parts, last] if last or parts else ())


def loops(function: Function) -> list[Loop]:
    """Return the innermost loops, in order of address. A loop is a branch back to an instruction from which the branch
    can be reached again. A block placed out of line that jumps back to where it was left is not a loop."""
    ends: dict[int, int] = {}
    for instruction in function.instructions:
        for target in function.goes_to(instruction):
            if target < instruction.address and _reaches(function, target, instruction.address):
                ends[target] = max(ends.get(target, 0), instruction.address)
    spans = sorted(ends.items())
    inner = [
        (start, end)
        for start, end in spans
        if not any(start <= s and e <= end and (s, e) != (start, end) for s, e in spans)
    ]
    return [Loop(start, end, function.between(start, end)) for start, end in inner]


def _reaches(function: Function, start: int, goal: int) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        address = waiting.pop()
        if address == goal:
            return True
        for following in function.follows(function.instructions[function.index[address]]):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return False


def _sections(listing: str) -> Iterator[tuple[str, list[str]]]:
    symbol, lines = "", list[str]()
    for line in listing.splitlines():
        if begins := _SECTION.match(line):
            if symbol:
                yield symbol, lines
            symbol, lines = begins[1].strip('"'), []
        elif _OTHER_SECTION.match(line):
            if symbol:
                yield symbol, lines
            symbol = ""
        elif symbol:
            lines.append(line)
    if symbol:
        yield symbol, lines


class _Reader:
    """Parses a listing line by line. nvdisasm prints a place only when it changes, for source and PTX separately."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self._waiting: list[str] = []
        """Labels before the next instruction; a label at the end of the section has no instruction."""
        self._source: Place | None = None
        self._inlined: list[Place] = []
        self._chain = False
        self._ptx: int | None = None

    def take(self, line: str) -> None:
        if place := _PLACE.match(line):
            self._place(place)
        elif label := _LABEL.match(line):
            self._waiting.append(label[1])
        elif high := _HIGH_WORD.match(line):
            self._high_word(int(high["word"], 16))
        elif shown := _LINE.match(line):
            self._instruction(int(shown["address"], 16), shown["rest"])

    def _place(self, match: re.Match[str]) -> None:
        file, line = match["file"], int(match["line"])
        if file.startswith(_PTX):
            self._ptx = line
        elif self._chain:
            self._inlined.append(Place(file, line))
        else:
            self._source, self._inlined = Place(file, line), []
        self._chain = bool(match["inlined"])

    def _instruction(self, address: int, rest: str) -> None:
        encoding = None
        if word := _ENCODING.search(rest):
            encoding = (int(word["word"], 16), 0)
            rest = rest[: word.start()]
        tables = _TABLE.findall(rest)
        text = _NOTE.sub("", rest).strip().rstrip("}").strip().rstrip(";").strip()
        text = re.sub(r"\s+", " ", text)
        body = _BODY.match(text)
        if body is None:
            raise ValueError(f"nvdisasm's line cannot be read: {rest}")
        opcode, *modifiers = body["name"].split(".")
        operands = split_operands(body["operands"])
        targets = [t for operand in operands for t in _TARGET.findall(operand)]
        targets += [t.strip() for table in tables for t in table.split(",")]
        self.labels.update(dict.fromkeys(self._waiting, address))
        self._waiting.clear()
        self.instructions.append(
            Instruction(
                address,
                body["predicate"] or "",
                opcode,
                tuple(modifiers),
                operands,
                text,
                tuple(targets),
                self._source,
                tuple(self._inlined),
                self._ptx,
                encoding,
            )
        )
        self._chain = False

    def _high_word(self, word: int) -> None:
        last = self.instructions[-1]
        if last.encoding:
            self.instructions[-1] = replace(last, encoding=(last.encoding[0], word))
