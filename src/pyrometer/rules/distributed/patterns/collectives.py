"""Collectives of a trace, as findings name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.rules.rule import Case

if TYPE_CHECKING:
    from pyrometer.trace.records.device import CollectiveGroup
    from pyrometer.trace.records.rank import RankReport


def place_of_collective(group: CollectiveGroup, report: RankReport) -> Place:
    """Where a rank calls a collective."""
    where = group.where
    return Place(file=where.file, line=where.line, function=where.function, op=group.name, rank=report.rank)


def waited_ns(case: Case) -> int | None:
    """Waiting of the rank that is looked at for others; null where only its own trace is known."""
    rank = case.trace.rank if case.trace is not None else None
    rows = case.job.ranks if case.job is not None else []
    return next((row.waited_ns for row in rows if row.rank == rank), None)
