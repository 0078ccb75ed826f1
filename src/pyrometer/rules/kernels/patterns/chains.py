"""Repeated chains of memory-bound work in a trace, put together by the function that runs them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import Gain
from pyrometer.rules.host.patterns.waits import OPTIMIZER
from pyrometer.rules.kernels.patterns.operators import on_device
from pyrometer.rules.rule import Case
from pyrometer.rules.sequences import is_tiny, memory_bound_ns, names_of

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.reporting.totals import Sequence


class Chains(NamedTuple):
    """The chains of one function."""

    sequences: list[tuple[int, Sequence]]
    """With their rows in the report; the largest gain first."""
    share: float
    """Of the span: their parts that are bound by memory."""
    parts_per_step: float
    span_ns: int

    @property
    def operators(self) -> set[str]:
        """What their parts are."""
        return {name for _, sequence in self.sequences for name in names_of(sequence)}

    @property
    def handed_bytes(self) -> int | None:
        """Results that are written for the next part to read, in the whole trace; null where shapes are not known."""
        known = [
            sequence.intermediate_bytes
            for _, sequence in self.sequences
            if sequence.intermediate_bytes is not None
        ]
        return sum(known) if len(known) == len(self.sequences) else None

    @property
    def bytes_per_part(self) -> float | None:
        """Of what a part hands on."""
        handed = self.handed_bytes
        return (
            None if handed is None else handed / sum(sequence.num_removed for _, sequence in self.sequences)
        )

    @property
    def gain(self) -> Gain:
        """What fusing saves of their own time; pauses between the parts are another matter."""
        low = sum(sequence.gain_low_ns - sequence.pause_ns for _, sequence in self.sequences) / self.span_ns
        high = sum(sequence.gain_high_ns - sequence.pause_ns for _, sequence in self.sequences) / self.span_ns
        return Gain(
            ratio_low=max(0.0, 1 - high),
            ratio_high=min(1.0, 1 - low),
            method="bound: fused, a chain takes as long as its longest part; at worst nothing is fused"
            if self.handed_bytes is None
            else "roofline: results within a chain are neither written nor read again, at the rate that its parts move bytes; at "
            "worst they are still written, for the backward pass",
        )


def chains_of(case: Case, *, min_bytes: float, min_length: float) -> Iterator[Chains]:
    """The chains of each function that are worth fusing for their traffic.

    Those of the optimizer are left out, which has fused forms of its own; and so are tiny parts, which cost their launches. Of
    a device whose shapes are not known, parts that take longer than a launch are bound by what they move.

    Args:
        case: with a trace.
        min_bytes: least that a part hands on.
        min_length: least number of parts per step.
    """
    trace = case.trace
    groups: dict[tuple[object, ...], list[tuple[int, Sequence]]] = defaultdict(list)
    for i, sequence in enumerate(trace.sequences if trace is not None else ()):
        if trace is not None and _is_worth_it(trace, sequence, min_bytes):
            at = sequence.where
            groups[at.file, at.line, at.function, None if at.file else at.module].append((i, sequence))
    for sequences in groups.values():
        assert trace is not None
        per_step = (
            sum(sequence.count * len(sequence.parts) for _, sequence in sequences) / case.num_traced_steps
        )
        if per_step >= min_length:
            spent = sum(memory_bound_ns(sequence) for _, sequence in sequences)
            yield Chains(sequences, min(1.0, spent / max(trace.span_ns, 1)), per_step, max(trace.span_ns, 1))


def _is_worth_it(trace: RankReport, one: Sequence, min_bytes: float) -> bool:
    if one.kind == "repeated" or one.where.phase == OPTIMIZER or is_tiny(one, trace):
        return False
    if one.intermediate_bytes is None:
        return on_device(trace)
    return one.intermediate_bytes >= min_bytes * one.num_removed
