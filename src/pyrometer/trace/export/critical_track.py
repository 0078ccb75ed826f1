"""The critical path as slices, where an analysis of that name is there."""

from __future__ import annotations

from typing import TypeVar

from pyrometer.trace.trace import RankTrace

T = TypeVar("T")


def critical_highlights(trace: RankTrace, kind: type[T]) -> list[T]:
    """Stretches of the critical path."""
    del trace, kind
    return []
