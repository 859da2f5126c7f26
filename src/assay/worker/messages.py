"""Requests and answers: frozen dataclasses on either side of a channel, JSON in between.

A request names the type of its answer and the function that computes it. To run something in another process, a verb
declares one request, one answer and one function:

    @dataclass(frozen=True)
    class Build(Request[Built], answered_by="assay.worker.execute:build"): ...

Every answer is validated strictly against its type before it is read, because the process that sent it is not trusted.
Fields that the type does not name are dropped."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from assay.worker.channel import Damaged

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class Answer:
    """The base of every answer, and of every dataclass inside one."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"strict": True, "allow_inf_nan": False}

    @property
    def shared_bytes(self) -> int:
        """Bytes that the answer says are in the shared memory."""
        return 0


A = TypeVar("A")


class Request(Generic[A]):
    """The base of every request. `answered_by` is `module:function` of the function that answers it in the other
    process."""

    answered_by: ClassVar[str]
    answer_type: ClassVar[Any]

    def __init_subclass__(cls, answered_by: str) -> None:
        cls.answered_by = answered_by
        (cls.answer_type,) = typing.get_args(typing.cast(Any, cls).__orig_bases__[0])

    def to_message(self) -> dict[str, Any]:
        """Return the message to send, which `read_request` reads in the other process."""
        return {"do": f"{type(self).__module__}:{type(self).__qualname__}", **plain(self)}

    def read_answer(self, data: Any) -> A:
        """Return the typed answer. Raise Damaged if the data is not an answer to this request."""
        return validated(self.answer_type, data, f"an answer that is not one to '{type(self).__name__}'")


def read_request(message: dict[str, Any]) -> tuple[Any, Callable[..., Any]]:
    """Return, in the other process, the request and the function that answers it."""
    kind = _named(message.pop("do"))
    return built(kind, message), _named(kind.answered_by)


def _named(name: str) -> Any:
    module, _, member = name.partition(":")
    return getattr(import_module(module), member)


def plain(value: Any) -> Any:
    """Convert dataclasses to dictionaries, at any depth; a class with `to_dict` converts itself."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def built(kind: Any, value: Any) -> Any:
    """Convert JSON data back to that type, the reverse of `plain`, without checks: only for data from the parent."""
    if hasattr(kind, "from_dict"):
        return kind.from_dict(value)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: built(hints[name], one) for name, one in value.items()})
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return None if value is None else built(inner[0], value)
    if origin in (tuple, list):
        return origin(built(inner[0], one) for one in value)
    if origin is dict:
        return {key: built(inner[1], one) for key, one in value.items()}
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def validated(kind: Any, data: Any, wrong: str) -> Any:
    """Return JSON data as that type, if it is exactly that. Raise Damaged with `wrong`, where, and why."""
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_json(json.dumps(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"] if not str(part)[:1].isupper())
        where = f" at `{place}`" if place else ""
        raise Damaged(f"{wrong}{where}: {first['msg']}") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
