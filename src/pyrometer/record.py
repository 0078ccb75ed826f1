"""The base of every result: immutable, validated, versioned, serialisable.

A record is measured once and looked at many times; every view is a pure function of records. Fields carry
their unit in the name (`median_s`, `peak_bytes`) and their meaning in `Annotated[..., doc("...")]`, from which
the JSON Schema is generated. Formats only grow: a later version reads what an earlier one wrote, because unknown
fields are ignored and new fields have defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from pyrometer.errors import InputError

R = TypeVar("R", bound="Record")


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base class of all results.

    >>> class Point(Record, frozen=True, kw_only=True):
    ...     x_s: float
    >>> from_json(Point, to_json(Point(x_s=1.5))).x_s
    1.5
    """

    def __str__(self) -> str:
        """The short answer, as a verb prints it; of a record that has none, its `repr`."""
        return _load_view().in_text(self)

    def to_json(self) -> str:
        """The record as JSON, indented."""
        return to_json(self, indent=2).decode()

    def save(self, path: str | Path) -> Path:
        """Write the record to a file, without secrets: a page (`.html`), its data (`.json`) or Markdown (`.md`).

        Raises:
            InputError: another suffix, or a place that cannot be written.
        """
        return _load_view().save(self, Path(path))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows of the record: the part of a report that fits it."""
        del include, exclude  # IPython filters by itself
        return _load_view().mime_bundle(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """What IPython shows of the record among others, in a list or a dictionary: one line."""
        printer.text(_load_view().in_short(self))


class NotebookView(Protocol):
    """What draws records: in notebooks, in terminals and in files."""

    def mime_bundle(self, record: Record, /) -> dict[str, str]:
        """The renderings of a record by MIME type, as IPython's `_repr_mimebundle_` returns them."""

    def in_short(self, record: Record, /) -> str:
        """One line for a record among others."""

    def in_text(self, record: Record, /) -> str:
        """What `print` shows of a record."""

    def save(self, record: Record, path: Path, /) -> Path:
        """Write a record to a file whose suffix says the form."""


_load_view: Callable[[], NotebookView]


def show_in_notebooks(load: Callable[[], NotebookView]) -> None:
    """Let records be drawn by what `load` returns; the top package calls it on import."""
    global _load_view  # noqa: PLW0603 - one view per process
    _load_view = load


def doc(text: str) -> msgspec.Meta:
    """What a field means, for readers of the JSON Schema; it stands in the field's `Annotated` type."""
    return msgspec.Meta(description=text)


def to_json(record: Record, *, indent: int | None = None) -> bytes:
    """Encode a record as UTF-8 JSON; `indent` spaces per level when given."""
    raw = msgspec.json.encode(record)
    return raw if indent is None else msgspec.json.format(raw, indent=indent)


def to_dict(record: Record) -> dict[str, Any]:
    """Turn a record into plain dictionaries, lists, strings and numbers."""
    plain: dict[str, Any] = msgspec.to_builtins(record)
    return plain


def from_json(kind: type[R], raw: bytes | str) -> R:
    """Decode and validate a record.

    Raises:
        InputError: the text is not JSON, or does not fit the record.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.MsgspecError as error:
        raise InputError(f"not a {kind.__name__} record: {error}") from error


def from_dict(kind: type[R], plain: Any) -> R:
    """Build and validate a record, from plain dictionaries and lists."""
    try:
        return msgspec.convert(plain, type=kind)
    except msgspec.MsgspecError as error:
        raise InputError(f"not a {kind.__name__} record: {error}") from error
