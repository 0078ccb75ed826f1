"""The ceilings of a roofline: what arithmetic of each type and each memory allow, and who says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyrometer.hardware.peaks import DatasheetPeaks, Peak, Peaks
from pyrometer.trace.analysis.roofline import AnyPeaks, peaks_for, roof_of
from pyrometer.trace.records.rates import Ceiling
from pyrometer.trace.trace import RankTrace

MEMORIES = ("memory", "cache")
"""Ceilings of traffic; all others are of arithmetic."""


def ceilings(trace: RankTrace, peaks: AnyPeaks | None = None) -> list[Ceiling]:
    """The ceilings that operators are compared with: memory and cache, then arithmetic, the lowest first.

    Args:
        trace: one rank's trace.
        peaks: measured, or the vendor's; without, the vendor's for the device that the trace names. Where neither is
            known there are no ceilings.
    """
    known, roof = peaks_for(trace, peaks), roof_of(trace, peaks)
    if known is None or roof is None:
        return []
    found = _printed(known) if isinstance(known, DatasheetPeaks) else _measured(known, roof.source)
    return sorted(found, key=lambda ceiling: (ceiling.name not in MEMORIES, ceiling.rate))


def _printed(known: DatasheetPeaks) -> Iterator[Ceiling]:
    rates = {"memory": known.memory_bytes_per_s, **known.flop_per_s}
    for name, rate in rates.items():
        yield Ceiling(name=name, rate=rate, source=known.source, is_measured=False)


def _measured(known: Peaks, source: str) -> Iterator[Ceiling]:
    """Of a product and a convolution the one that does more, as shares of the roof take it."""
    rates: dict[str, Peak] = {}
    held: tuple[Mapping[str, Peak], ...] = (
        {name: known.copy_bytes_per_s[name] for name in MEMORIES if name in known.copy_bytes_per_s},
        known.matmul_flop_per_s,
        known.conv_flop_per_s,
    )
    for peaks in held:
        for name, peak in peaks.items():
            if name not in rates or peak.best > rates[name].best:
                rates[name] = peak
    for name, peak in rates.items():
        work = f"{peak.work}, best of {peak.num_timings} timings"
        low = min(peak.median, peak.best)
        yield Ceiling(name=name, rate=peak.best, low=low, source=source, is_measured=True, work=work)
