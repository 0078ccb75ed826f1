"""What the compiler said of itself, entry by entry: the one noun that all readers of this room start from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyrometer.compiler.compile_id import CompileId

PROBES = "pyrometer."
"""Kinds of our own probes begin with this."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of torch's structured trace, or of one of our own probes."""

    kind: str
    """`dynamo_output_graph`, `compilation_metrics`, …; of an artifact its name; of our probes `pyrometer.<what>`."""
    metadata: Any
    """What stands under the kind; file names of stacks are resolved."""
    payload: str = ""
    compile_id: CompileId | None = None
    attempt: int = 0
    """Dynamo traces a frame again after a break; the last attempt counts."""
    time_ns: int = 0
    """Since the epoch of the clock, as `time.time_ns()`."""
    thread: int = 0
    rank: int | None = None
    stack: tuple[dict[str, Any], ...] = ()
    """Of the thread when the entry was made, the innermost last: dicts with `filename`, `line`, `name`, `loc`."""

    @property
    def fields(self) -> dict[str, Any]:
        """The metadata by name; empty where they are no fields."""
        return self.metadata if isinstance(self.metadata, dict) else {}

    @property
    def id_text(self) -> str:
        """Its compilation as records name it; empty where it belongs to none."""
        return "" if self.compile_id is None else self.compile_id.text


@dataclass(frozen=True)
class CompileLog:
    """All entries of one process, in the order in which they were made."""

    entries: tuple[LogEntry, ...]
    torch_version: str = ""
    source: str = "process"
    """`process`, or the file that it was read from."""
    num_faults: int = 0
    """Entries that our own handler could not take; nothing of them is known."""
    unavailable: tuple[str, ...] = ()
    """What this torch, or this way of recording, does not tell; each in one line."""
    counters: dict[str, int] = field(default_factory=dict)
    """How much torch's own counters grew while recording, as `group.name`."""

    @property
    def is_live(self) -> bool:
        """Whether it is of this process, so that files and objects are as they were."""
        return self.source == "process"

    def of(self, *kinds: str) -> Iterator[LogEntry]:
        """The entries of some kinds, in order."""
        return (entry for entry in self.entries if entry.kind in kinds)

    def compile_ids(self) -> list[CompileId]:
        """Every compilation that is named, in the order of their first entries."""
        return list(dict.fromkeys(entry.compile_id for entry in self.entries if entry.compile_id is not None))
