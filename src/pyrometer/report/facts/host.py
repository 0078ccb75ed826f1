"""Where the host's time goes, in words."""

from __future__ import annotations

from pyrometer.host.profile import HostLine, HostLoop, HostProfile
from pyrometer.place import place_text
from pyrometer.quantity import format_percent, format_seconds, significant
from pyrometer.report.facts.layout import Fact, Section, Table

MOST_LINES = 12
LEAST_SHARE = 0.01
"""Of a step, below which a line is not shown."""

HOW = (
    "Own time is that of a line and of what it calls, but for other lines of yours, which have their own; it is sampled in steps that ran "
    "without the profiler. Where a device works meanwhile, the host's time may cost nothing."
)
CHANGE = "More samples: a longer budget. A line with few of them may be off by as much as it has."
KINDS = {
    "python": "Python",
    "operator": "operators",
    "backward": "backward",
    "synchronisation": "waiting for a value",
    "json": "JSON",
    "regex": "regular expressions",
    "numpy": "NumPy",
    "lock": "waiting for a lock",
    "garbage": "garbage collection",
}
"""Words for kinds of leaves, where the kind itself is none."""


def section(profile: HostProfile) -> Section | None:
    """The lines on which the host spends its time; None where there are none."""
    lines = [line for line in profile.lines if profile.share(line.own_s) >= LEAST_SHARE][:MOST_LINES]
    if not lines:
        return None
    loops = {(loop.where.file, loop.where.line): loop for loop in profile.loops}
    columns = ("line", "own time", "share", "spent on", "in the loop", "source")
    rows = [_row(profile, line, loops) for line in lines]
    return Section(
        "host",
        "Where the host's time goes",
        _facts(profile),
        Table(columns, rows, words=frozenset({3, 4, 5})),
        how=HOW,
        change=CHANGE,
    )


def _row(
    profile: HostProfile, line: HostLine, loops: dict[tuple[str | None, int | None], HostLoop]
) -> tuple[str, ...]:
    leaf = line.leaves[0] if line.leaves else None
    around = None if line.loop is None else loops.get((line.loop.file, line.loop.line))
    return (
        place_text(line.where.file, line.where.line),
        format_seconds(line.own_s),
        format_percent(profile.share(line.own_s)),
        "" if leaf is None else _spoken(leaf.kind, leaf.name),
        "" if around is None else _loop_text(around),
        line.where.source or "",
    )


def _spoken(kind: str, name: str) -> str:
    words = KINDS.get(kind, kind)
    return words if name in {kind, words} else f"{words}: {name}"


def _loop_text(loop: HostLoop) -> str:
    """Where a loop begins, and how long it is."""
    if loop.rounds_per_step is None:
        return f"line {loop.where.line}"
    rounds = f"{loop.rounds_per_step:,.0f}"
    return f"line {loop.where.line}, {rounds} rounds"


def _facts(profile: HostProfile) -> list[Fact]:
    facts = [
        Fact(
            "sampled",
            f"{profile.steps:,} steps",
            f"{profile.samples:,} looks, {format_seconds(profile.interval_s)} apart",
        )
    ]
    if profile.outside_s > 0:
        share = format_percent(profile.share(profile.outside_s))
        facts.append(
            Fact("without a line of yours", share, "backward, optimizer, loader and what runs the step")
        )
    if profile.overhead_share is not None:
        percent = significant(100 * profile.overhead_share, 2)
        facts.append(
            Fact("sampling lengthened a step by", f"{percent} %", "steps with and without it in turn")
        )
    return facts + [Fact("note", note) for note in profile.notes]
