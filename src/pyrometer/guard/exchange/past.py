"""What another tool measured at one commit: a point of history that Pyrometer did not take itself."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

import msgspec

from pyrometer.document import Document
from pyrometer.errors import InputError
from pyrometer.guard.gate import Kind
from pyrometer.record import Record, doc

F = TypeVar("F")


class PastFigure(Record, frozen=True, kw_only=True):
    """One metric of one benchmark."""

    benchmark: Annotated[str, doc("as its tool names it, with its parameters")]
    metric: Annotated[str, doc("median_s, peak_bytes, or the unit of a tracked value")]
    kind: Kind
    value: float
    low: Annotated[float | None, doc("lower end of a 99 % interval; null where the file does not tell")] = (
        None
    )
    high: float | None = None
    num_samples: int | None = None


class PastPoint(Document, frozen=True, kw_only=True):
    """Everything that one file holds; kept by `pyrometer guard record --from`."""

    tool: Annotated[str, doc("with its version, where the file tells")]
    commit: Annotated[str | None, doc("null where the tool knew none")] = None
    is_dirty: Annotated[bool, doc("whether there were changes beyond the commit")] = False
    taken_at: Annotated[str | None, doc("ISO 8601")] = None
    machine: Annotated[
        dict[str, str], doc("what the tool says of it; other machines are not comparable")
    ] = {}
    figures: list[PastFigure]
    notes: Annotated[list[str], doc("benchmarks that failed, each once")] = []

    @property
    def target(self) -> str:
        """The commit, or where none is known the tool."""
        return self.commit or self.tool


def decoded(raw: bytes | str, kind: type[F], tool: str) -> F:
    """The file of a tool, as far as it is needed.

    JSON of other tools may hold `NaN`, which is none by the standard.

    Raises:
        InputError: no JSON, or none of that tool.

    >>> decoded('{"a": NaN}', dict, "asv")
    {'a': nan}
    """
    try:
        plain: Any = json.loads(raw)
        return msgspec.convert(plain, type=kind, strict=False)
    except (ValueError, RecursionError) as error:  # also of msgspec, and of text that is not UTF-8
        said = " ".join(str(error).split())[:200]
        raise InputError(f"not a file of {tool}: {said}; give the JSON that it wrote itself") from error


def required(point: PastPoint, tool: str) -> PastPoint:
    """A point that says something.

    Raises:
        InputError: it holds no figure.
    """
    if not point.figures:
        failed = f": {', '.join(point.notes[:3])}" if point.notes else ""
        raise InputError(
            f"the file of {tool} holds no result{failed}; run the benchmarks, then read it again"
        )
    return point
