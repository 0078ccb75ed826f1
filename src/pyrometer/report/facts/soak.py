"""What a `Soak` says."""

from __future__ import annotations

from collections.abc import Callable

from pyrometer.bench.record import Drift, Soak
from pyrometer.quantity import counted, format_bytes, format_percent, format_seconds
from pyrometer.report.facts.layout import Table, percent

LATENCY_WORDS = {"rising": "slower", "falling": "faster", "flat": "steady", "undecided": "undecided"}
MEMORY_WORDS = {"rising": "grows", "falling": "shrinks", "flat": "steady", "undecided": "undecided"}


def headline(soak: Soak) -> str:
    """Whether latency and memory stayed as they were."""
    ran = format_seconds(soak.elapsed_s)
    if soak.latency is None or soak.memory is None:
        return f"{ran} were too short to see a drift"
    latency = _said(soak.latency, LATENCY_WORDS, format_percent)
    return f"over {ran}: steps {latency}, memory {_said(soak.memory, MEMORY_WORDS, format_bytes)}"


def subtitle(soak: Soak) -> str:
    """What it rests on."""
    parts = [counted(soak.num_steps, "step"), counted(len(soak.windows), "window")]
    if soak.steps_per_sample > 1:
        parts.append(f"P99 of means of {soak.steps_per_sample} steps")
    return " · ".join([*parts, soak.memory_source])


def drift_table(soak: Soak) -> Table:
    """The slope of each figure with its interval, and the change over the run."""
    columns = ("figure", "over the run", "per hour", f"{percent(soak.confidence)} interval per hour", "trend")
    rows = [
        _row("median step", soak.latency, format_percent, LATENCY_WORDS),
        _row("P99", soak.tail, format_percent, LATENCY_WORDS),
        _row("memory", soak.memory, format_bytes, MEMORY_WORDS),
    ]
    return Table(columns, rows)


def _said(drift: Drift, words: dict[str, str], shown: Callable[[float], str]) -> str:
    """A trend in words, with its size where there is one.

    >>> _said(Drift(per_hour=0.2, ci_low=0.1, ci_high=0.3, change=0.1, trend="rising"), LATENCY_WORDS, format_percent)
    'slower (+10.0 %)'
    """
    word = words[drift.trend]
    return word if drift.trend in {"flat", "undecided"} else f"{word} ({_signed(drift.change, shown)})"


def _row(
    name: str, drift: Drift | None, shown: Callable[[float], str], words: dict[str, str]
) -> tuple[str, ...]:
    if drift is None:
        return name, "–", "–", "–", "too few windows"
    low, high = (None if end is None else _signed(end, shown) for end in (drift.ci_low, drift.ci_high))
    bounds = "not bounded" if low is None and high is None else f"{low or '−∞'} to {high or '∞'}"
    return name, _signed(drift.change, shown), _signed(drift.per_hour, shown), bounds, words[drift.trend]


def _signed(value: float, shown: Callable[[float], str]) -> str:
    return f"{'+' if value > 0 else ''}{shown(value)}"
