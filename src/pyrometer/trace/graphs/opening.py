"""Opening traces so that graphs are explained: by a capture in the same file, or by one in a second file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyrometer.trace.graphs.captures import find_captures
from pyrometer.trace.graphs.join import find_launches_of_graphs, join_capture
from pyrometer.trace.reading.paths import find_files
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import RankTrace, Trace


def read_joined(paths: str | Path | Sequence[str | Path], *, strict: bool = False) -> Trace:
    """Read traces as `read_trace` does, and join what captured graphs to what launched them.

    Of two files of which one only captured graphs and the other launched some, one trace is made: that of the launches.

    Raises:
        InputError: as `read_trace`.
    """
    files = find_files(paths)
    if len(files) == 2:
        pair = capture_and_launch([read_trace(path, strict=strict).ranks[0] for path in files])
        if pair is not None:
            capture, trace = pair
            return Trace((join_capture(trace, capture),))
    return Trace(tuple(explained(rank) for rank in read_trace(files, strict=strict).ranks))


def explained(trace: RankTrace) -> RankTrace:
    """A trace with the operators of the graphs that it captured itself, if it did."""
    return join_capture(trace, trace) if find_captures(trace) else trace


def capture_and_launch(ranks: Sequence[RankTrace]) -> tuple[RankTrace, RankTrace] | None:
    """Of two traces the one that only captured graphs, and the one that launched some; `None` for any others."""
    only = [rank for rank in ranks if only_captures(rank)]
    others = [rank for rank in ranks if find_launches_of_graphs(rank)]
    return (only[0], others[0]) if len(ranks) == 2 and len(only) == len(others) == 1 else None


def only_captures(trace: RankTrace) -> bool:
    """Whether a trace captured graphs and launched none."""
    return bool(find_captures(trace)) and not find_launches_of_graphs(trace)
