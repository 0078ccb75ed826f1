"""Collectives of a trace, as findings name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place

if TYPE_CHECKING:
    from pyrometer.trace.analysis.collectives import CollectiveGroup
    from pyrometer.trace.reporting.rank_report import RankReport


def place_of_collective(group: CollectiveGroup, report: RankReport) -> Place:
    """Where a rank calls a collective."""
    where = group.where
    return Place(file=where.file, line=where.line, function=where.function, op=group.name, rank=report.rank)
