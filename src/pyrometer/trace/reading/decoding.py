"""Decoding events: all at once where they are sound, one by one and leniently where they are not."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from pyrometer.trace.reading.shapes import Event, ExactEvent

AnyEvent: TypeAlias = Event | ExactEvent
Shape: TypeAlias = type[Event] | type[ExactEvent]

T = TypeVar("T")

DECODE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)
"""What msgspec raises for text that is damaged, not UTF-8, of another type, or nested too deeply."""

_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")


class Loose(NamedTuple):
    """An object with the values that fit, and how many did not."""

    value: Any
    misfits: int


@cache
def decoder(kind: Any, *, strict: bool = True) -> msgspec.json.Decoder[Any]:
    """The decoder of a type."""
    return msgspec.json.Decoder(kind, strict=strict)


def decode_list(text: bytes, kind: type[T]) -> list[T]:
    """Decode a JSON list of objects; numbers in quotes are accepted.

    Raises:
        ValueError: the text is damaged, or a value has a type that does not belong there.
        RecursionError: it is nested too deeply.
    """
    try:
        return decoder(list[kind]).decode(text)  # type: ignore[valid-type, no-any-return]
    except msgspec.ValidationError:
        return decoder(list[kind], strict=False).decode(text)  # type: ignore[valid-type, no-any-return]


def decode_loosely(text: bytes, kind: type[msgspec.Struct]) -> Loose | None:
    """Decode one object, leaving out the values that do not fit; None where the text itself is damaged."""
    try:
        (value,) = decode_list(b"[" + text + b"]", kind)
    except msgspec.ValidationError:
        return _field_by_field(text, kind)
    except DECODE_ERRORS:  # damaged, or more than one
        return None
    return Loose(value, 0)


def _field_by_field(text: bytes, kind: type[msgspec.Struct]) -> Loose | None:
    try:
        held = decoder(dict[str, msgspec.Raw]).decode(text)
    except DECODE_ERRORS:
        return None
    kept: dict[str, Any] = {}
    misfits = 0
    for spec in msgspec.structs.fields(kind):
        if spec.encode_name in held:
            fits, value = _fitting(held[spec.encode_name], spec.type)
            misfits += not fits
            if value is not None:
                kept[spec.name] = value
    return Loose(kind(**kept), misfits)


def _fitting(raw: msgspec.Raw, kind: Any) -> tuple[bool, Any]:
    """Whether a value has the type, and what to take; a number that should be text is taken as text."""
    try:
        return True, decoder(kind, strict=False).decode(raw)
    except DECODE_ERRORS:
        return False, bytes(raw).decode(errors="replace") if kind == str | None else None


def trailing_from(error: BaseException) -> int | None:
    """Where the text after a complete value begins, if that is what the decoder complained about."""
    match = _TRAILING.search(str(error))
    return int(match[1]) - 1 if match else None  # the decoder counts from 1


def is_short(error: BaseException) -> bool:
    """Whether the decoder ran out of text."""
    return "truncated" in str(error)
