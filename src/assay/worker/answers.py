"""What a worker may answer, by the question: every answer is held against its type before anyone reads it.

Keys that are not named here pass as they are; keys that are named must be there and have their type."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from typing_extensions import TypedDict  # pydantic refuses typing's own before Python 3.12

from assay.worker.channel import Damaged

if TYPE_CHECKING:
    from pydantic import TypeAdapter

from annotated_types import Ge

Count = Annotated[int, Ge(0)]


class Failure(TypedDict):
    """An exception as data (assay.worker.failure)."""

    type: str
    message: str
    where: str
    ours: bool
    fix: str
    what: str
    trace: str


class Refusal(TypedDict):
    """The answer to any question that ended in an exception."""

    error: Failure


class Setting(TypedDict):
    """Something that was changed for the whole process."""

    name: str
    before: str
    after: str
    when: str
    instead: str


class Summary(TypedDict):
    """What a record keeps of the code that was started (assay.artifact)."""

    name: str
    text_hash: str


class Trial(TypedDict):
    """One call of the kernel, and what it did beside computing."""

    seconds: Annotated[float, Ge(0)]
    forks: Count
    read_outside: str
    """What an interpreter saw being read outside the tensors."""
    returned: str
    settings: list[Setting]
    replaced: list[str]
    artifacts: list[Summary]
    compared: list[int]
    """Integers that the PTX started compares registers with."""


class Launched(TypedDict):
    grid: list[int]
    block: list[int]
    shared: Count
    artifact: Summary


class Build(TypedDict):
    launches: list[Launched]


class WithParts(Launched):
    parts: dict[str, Count]
    """Bytes of each piece of code in the arena, one after another."""


class Compiled(TypedDict):
    launches: list[WithParts]


class Round(TypedDict):
    """Samples of one round of a benchmark, in seconds."""

    first_call: float
    artifacts: list[Summary]
    cold: list[float]
    batch: Annotated[int, Ge(1)]
    held: bool
    sm_hz: list[float | None]
    cache: Count
    hot: NotRequired[list[float]]
    call: NotRequired[list[float]]
    single: NotRequired[Annotated[int, Ge(1)]]
    """These three are missing from a round of the yardsticks."""
    peak_bytes: NotRequired[Count]
    """That one call allocates at its most; of the first round on a GPU."""


class Found(TypedDict):
    detector: str
    what: str


class Wrong(TypedDict):
    """What a kernel did that it must not do while it is timed."""

    finding: Found


class Uncapturable(TypedDict):
    """Why the kernel's calls cannot become a graph."""

    uncapturable: str


class Activity(TypedDict):
    """What the device itself says ran, per call."""

    seconds: float
    launches: float
    names: dict[str, int]
    streams: Count


class Nothing(TypedDict):
    """Done; there is nothing to say."""


_KINDS: dict[str, Any] = {
    "trial": Trial,
    "build": Build,
    "compile": Compiled,
    "reference": Nothing,
    "timed": Round | Uncapturable | Wrong,
    "again": Nothing,
    "activity": Activity,
    "watch": Nothing,
}


def validated(question: dict[str, Any], answer: dict[str, Any], room: int) -> dict[str, Any]:
    """The answer, if it is one to this question; `room` is the size of the shared memory. Raises Damaged."""
    kind = "activity" if question.get("activity") else question["do"]
    if "error" in answer:
        kind = "error"
    elif kind not in _KINDS:
        return answer
    _check(kind, answer)
    if kind == "compile" and (size := sum(sum(each["parts"].values()) for each in answer["launches"])) > room:
        raise Damaged(f"an answer that names {size} bytes of code where {room} were written")
    return answer


def _check(kind: str, answer: dict[str, Any]) -> None:
    from pydantic import ValidationError

    try:
        _adapter(kind).validate_python(answer)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"] if not str(part)[:1].isupper())
        where = f" at `{place}`" if place else ""
        raise Damaged(f"an answer that is not one to '{kind}'{where}: {first['msg']}") from None


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter, with_config

    config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)
    for each in (
        Failure,
        Refusal,
        Setting,
        Summary,
        Trial,
        Launched,
        Build,
        WithParts,
        Compiled,
        Round,
        Uncapturable,
        Found,
        Wrong,
        Activity,
        Nothing,
    ):
        with_config(config)(each)
    return TypeAdapter(Refusal if kind == "error" else _KINDS[kind])
