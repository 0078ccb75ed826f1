"""`--limit breaks=0,recompiles=2,compile=60s`: what a compilation may cost in CI."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pyrometer.errors import UsageError
from pyrometer.settings import parse_duration

if TYPE_CHECKING:
    from pyrometer.compiler.budget import CompileBudget

FIELDS = {
    "breaks": "max_graph_breaks",
    "recompiles": "max_recompiles",
    "graphs": "max_graphs",
    "skipped": "max_skipped_frames",
    "compile": "max_compile_s",
}
"""What may be limited on the command line, and the field of the budget behind it."""


def parse_limits(texts: Iterable[str]) -> CompileBudget | None:
    """Read the limits of all flags together; `None` when there is none.

    >>> parse_limits(["breaks=0,compile=1m"]).max_compile_s
    60.0

    Raises:
        UsageError: an unknown name, or a value that is none.
    """
    from pyrometer.compiler.budget import CompileBudget

    limits: dict[str, Any] = {}
    for part in (part.strip() for text in texts for part in text.split(",") if part.strip()):
        name, equals, value = part.partition("=")
        if not equals or name.strip() not in FIELDS:
            raise UsageError(
                f"--limit: got {part!r}; legal are {', '.join(f'{known}=N' for known in FIELDS)}"
            )
        limits[FIELDS[name.strip()]] = _value(name.strip(), value.strip())
    return CompileBudget(**limits) if limits else None


def _value(name: str, text: str) -> float:
    if name == "compile":
        return parse_duration(f"{text}s" if text.replace(".", "", 1).isdigit() else text)
    if not text.isdigit():
        raise UsageError(f"--limit: got {name}={text}; it must be a whole number of at least 0")
    return int(text)
