"""What an analysis of logs says, in words and tables."""

from __future__ import annotations

from pyrometer.monitor.logs.record import Correlation, ErrorCluster, LatencyChange, LogAnalysis, Trigger
from pyrometer.quantity import counted, format_seconds
from pyrometer.report.facts.layout import Fact, Table, percent
from pyrometer.text import one_line

EVENTS = {"recompile": "compilations", "graph_break": "graph breaks"}


def headline(document: LogAnalysis) -> str:
    """The latency, and over how long."""
    if document.p50_s is None:
        return f"no latency in {counted(document.lines, 'line')}"
    tail = f" · P99 {format_seconds(document.p99_s)}"
    return f"median latency {format_seconds(document.p50_s)}{tail} · over {format_seconds(document.span_s)}"


def bound(document: LogAnalysis) -> str:
    """The largest rise, else the largest change, or that there is none."""
    if document.change_points:
        # What became slower is the news, also where it became fast again.
        largest = max(document.change_points, key=lambda one: (one.ratio > 1, max(one.ratio, 1 / one.ratio)))
        return change_sentence(largest)
    return "the level of latency did not change" if len(document.trend) > 1 else ""


def change_sentence(change: LatencyChange) -> str:
    """A change in one sentence, with what came with it."""
    name = "P99 of latency" if change.quantile == "p99" else "latency"
    moved = f"{name} {'rose' if change.ratio > 1 else 'fell'} by {abs(change.ratio - 1):.0%} at {clock(change.at)}"
    together = next((one for one in change.together if one.share_after > one.share_before), None)
    return moved if together is None else f"{moved}, with {together.feature} {together.value}"


def clock(at: str) -> str:
    """A time without its date's year and its fractions.

    >>> clock("2026-11-28T01:02:03.000000Z")
    '11-28 01:02:03 UTC'
    """
    return f"{at[5:10]} {at[11:19]} UTC"


def figures(document: LogAnalysis) -> list[Fact]:
    """The few figures that one looks for first."""
    facts = [
        Fact("median", format_seconds(document.p50_s)),
        Fact("P95", format_seconds(document.p95_s)),
        Fact("P99", format_seconds(document.p99_s)),
        Fact("requests", f"{document.num_requests:,}"),
    ]
    if document.num_errors:
        facts.append(Fact("errors", f"{document.num_errors:,}"))
    return facts


def change_table(changes: list[LatencyChange]) -> Table:
    """One row per change."""
    rows = [
        (
            clock(one.at),
            one.quantile.replace("p99", "P99"),
            format_seconds(one.before_s),
            format_seconds(one.after_s),
            f"{one.ratio - 1:+.0%}",
            ", ".join(
                f"{shift.feature} {shift.value or 'none'} {percent(shift.share_before)} → {percent(shift.share_after)}"
                for shift in one.together
            )
            or "–",
        )
        for one in changes
    ]
    return Table(
        ("time", "quantile", "before", "after", "change", "what changed with it"), rows, frozenset({5})
    )


def correlation_table(found: list[Correlation]) -> Table:
    """One row per feature."""
    rows = [
        (
            one.feature,
            percent(one.explained),
            "–" if one.alone is None else percent(one.alone),
            "–" if one.rank is None else f"{one.rank:+.2f}",
            f"{one.num_values:,}",
        )
        for one in found
    ]
    return Table(("feature", "explains", "by itself", "rank correlation", "values"), rows)


def value_table(one: Correlation) -> Table:
    """One row per value of a feature."""
    rows = [
        (value.value, f"{value.num_requests:,}", format_seconds(value.p50_s), format_seconds(value.p99_s), f"{value.tail_lift:.2f}×")
        for value in one.values
    ]  # fmt: skip
    return Table((one.feature, "requests", "median", "P99", "among the slowest 1 %"), rows)


def trigger_sentence(one: Trigger) -> str:
    """A trigger in words.

    >>> trigger_sentence(Trigger(event="recompile", pattern="batch 3", num_events=4, num_all=5, num_chances=9, lift=None))
    '4 of 5 compilations came with batch 3'
    """
    return f"{one.num_events:,} of {one.num_all:,} {EVENTS.get(one.event, one.event)} came with {one.pattern}"


def trigger_table(found: list[Trigger]) -> Table:
    """One row per pattern."""
    rows = [
        (
            one.pattern,
            EVENTS.get(one.event, one.event),
            f"{one.num_events:,} of {one.num_all:,}",
            f"{one.num_chances:,}",
            "–" if one.lift is None else f"{one.lift:,.0f}×" if one.lift >= 100 else f"{one.lift:.3g}×",
        )
        for one in found
    ]
    return Table(("pattern", "event", "with it", "chances", "rate with over without"), rows, frozenset({1}))


def cluster_table(clusters: list[ErrorCluster]) -> Table:
    """One row per cluster of errors."""
    rows = [
        (
            one_line(one.template, 100),
            f"{one.num_errors:,}",
            clock(one.first),
            clock(one.last),
            ", ".join(f"{shift.feature} {shift.value} ({percent(shift.share_after)})" for shift in one.mostly)
            or "–",
        )
        for one in clusters
    ]
    return Table(("error", "lines", "first seen", "last seen", "mostly with"), rows, frozenset({4}))
