"""Evidence: what the verdict of a record stands on.

Each verb owns one frozen dataclass of evidence, in its own room. A record holds it as plain JSON data, so that records
of any verb can be stored and read without that verb; `Evidence.of(record)` reads it back, typed. A field that is a
figure says so in its annotation (`Figure`), with its unit, a short name and a description: terminal, page, CSV and
Markdown print figures without knowing the verb they belong to."""

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Self

from assay.record import Record


@dataclass(frozen=True)
class Figure:
    """A number, or a word, that a record gives. It stands in the annotation of its field; `figures` adds where that
    is."""

    unit: str
    """`s`, `B`, `GB/s`, `share` (of 1), `×`, …; empty for a count or a word."""
    name: str
    """A heading of a column."""
    description: str
    column: str = ""
    """Its name in CSV and Parquet, the unit included; empty: it is not exported. Of an interval, `{}` stands for each
    of its two ends; of a part, its name follows that of the field that holds it."""
    id: str = ""
    """Where it stands in the evidence: `gbps`, `hot.median`."""
    kind: type = float
    """`int`, `float` or `str`."""

    def value(self, evidence: Mapping[str, Any]) -> int | float | str | None:
        """Of this evidence; None where it has no such figure, or something else in its place."""
        return typed(self.kind, at(evidence, self.id))


class Evidence:
    """The base of all evidence. Every field has a default: a record says only what there is to say."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"allow_inf_nan": False}

    @classmethod
    def of(cls, record: Record) -> Self:
        """The evidence of a record of this verb. A field that is not what it should be is as if it were not there:
        records come from files."""
        from pydantic import ValidationError

        try:
            return cls.read(record.evidence)
        except ValidationError as problem:
            wrong = {error["loc"][0] for error in problem.errors() if error["loc"]}
            return cls.read({name: value for name, value in record.evidence.items() if name not in wrong})

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """From JSON data, as `to_dict` gives it; a ValidationError for anything else."""
        evidence: Self = _adapter(typing.cast(Any, cls)).validate_python(data)
        return evidence

    def to_dict(self) -> dict[str, Any]:
        """As a record holds it: without what is None or empty and has that as its default."""
        return {name: value for name, value in _plain(self).items() if value is not None}


def figures(cls: type[Evidence]) -> tuple[Figure, ...]:
    """Those of a verb's evidence, in the order in which they are declared."""
    return tuple(_figures(cls, "", "", ""))


def _plain(value: Any) -> Any:
    """Dataclasses as dictionaries, however deep."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        said = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {f.name: _plain(v) for f, v in said if v not in ("", ()) or f.default != v}
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


@cache
def _adapter(cls: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


def _figures(cls: type, path: str, heading: str, prefix: str) -> Iterator[Figure]:
    """Of a dataclass, and of those that its fields hold."""
    hints = typing.get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):
        where, (kind, own) = f"{path}{field.name}", _annotated(hints[field.name])
        if dataclasses.is_dataclass(kind):
            yield from _figures(kind, f"{where}.", own.name if own else "", own.column if own else "")
        elif own:
            column = f"{prefix}{own.column}" if own.column else ""
            named = dataclasses.replace(own, name=f"{heading} {own.name}".strip(), column=column)
            if kind is tuple:
                for at, end in enumerate(("low", "high")):
                    yield dataclasses.replace(named, id=f"{where}.{at}", column=column.replace("{}", end))
            else:
                yield dataclasses.replace(named, id=where, kind=kind)


def _annotated(hint: Any) -> tuple[type, Figure | None]:
    """The type without None and parameters, and the figure beside it: (float, …) of `Annotated[float | None, …]`."""
    own = None
    if typing.get_origin(hint) is Annotated:
        hint, *beside = typing.get_args(hint)
        own = next((one for one in beside if isinstance(one, Figure)), None)
    if isinstance(hint, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not types.NoneType)
    return typing.get_origin(hint) or hint, own


def at(data: Any, path: str) -> Any:
    """The value at a dotted path of JSON data; None where there is none."""
    for part in path.split("."):
        if isinstance(data, Mapping):
            data = data.get(part)
        elif isinstance(data, list | tuple) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        else:
            return None
    return data


def typed(kind: type, value: Any) -> int | float | str | None:
    """The value if it is of that kind; None instead of another."""
    if kind is str:
        return None if value is None else str(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind is float:
        return float(value)
    return value if isinstance(value, int) and abs(value) < 1 << 63 else None
