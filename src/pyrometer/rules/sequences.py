"""Sequences of work that a trace repeats and that could be fused, as rules speak of them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case
from pyrometer.text import one_line

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.reporting.totals import Sequence

SHORT_NS = 10_000
"""A kernel below this takes about as long to launch as to run."""

MOST_PARTS = 4
MOST_CHARS = 40
"""Of a part's name within a sentence; those of kernels are long."""


def short_ns(trace: RankReport | None) -> int:
    """Below what work is mostly launching or dispatch: of operators, by what dispatch was seen to cost on this machine."""
    if trace is None or trace.device_busy_ns:
        return SHORT_NS
    return trace.launches.host.short_limit_ns


def is_tiny(one: Sequence, trace: RankReport | None) -> bool:
    """Whether its parts are short on average, so that launching is what they cost."""
    return one.total_ns < short_ns(trace) * one.count * len(one.parts)


def memory_bound_ns(one: Sequence) -> int:
    """Time of the parts that fusing may shorten: all but a matrix product at the beginning."""
    return sum(one.part_ns[1:] if one.kind == "epilogue" else one.part_ns)


def names_of(one: Sequence) -> list[str]:
    """Its operators where all are known, else its kernels."""
    known = [op for op in one.ops if op is not None]
    return known if len(known) == len(one.parts) else one.parts


def drawn(one: Sequence) -> str:
    """A sequence in words, such as `add → mul 2× → tanh`; of a long one how it begins."""
    runs = [(name, len(list(run))) for name, run in groupby(names_of(one))]
    parts = [name.removeprefix("aten::") + (f" {number}×" if number > 1 else "") for name, number in runs]
    shown = [one_line(part, MOST_CHARS) for part in parts[:MOST_PARTS]]
    return " → ".join([*shown, *(["…"] if len(parts) > MOST_PARTS else [])])


def told(case: Case, one: Sequence) -> str:
    """A sequence with its number and its place."""
    return f"{drawn(one)}, {one.count:,} times{spoken(place_of(case, one.where))}"
