"""What a page draws of a measurement: how its samples are spread, and how they follow each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.stability import HOUR_S, share_drift
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.report.attachments import Attachments
from pyrometer.report.charts.bins import bin_count, count_bins
from pyrometer.report.charts.histogram import FEWEST, last_shown, latency_scale
from pyrometer.report.charts.scale import Scale, fit
from pyrometer.report.charts.strip import warmup_scale
from pyrometer.report.documents import BenchDocument, CheckDocument, Document
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.series import (
    MOST_POINTS,
    Correlogram,
    TimeBlock,
    correlogram,
    rounded,
    time_blocks,
)
from pyrometer.series import extremes, thinned

MOST_STEPS = 2000
WIDEST = 1.0
"""A drift whose interval reaches beyond ± the median itself is given without it."""

FAR_OUT = 3.0
"""Interquartile ranges beyond the quartiles at which a sample is drawn as an outlier; Tukey's outer fence."""


class AxisView(Record, frozen=True, kw_only=True):
    """From where to where an axis goes."""

    low: float
    high: float
    log: bool


class Mark(Record, frozen=True, kw_only=True):
    """A line across a distribution."""

    name: Annotated[str, doc("median, P90, P95, P99 or deadline")]
    value_s: Seconds
    low_s: Annotated[Seconds | None, doc("its interval; null where there is none")] = None
    high_s: Seconds | None = None


class Spread(Record, frozen=True, kw_only=True):
    """How the samples are spread."""

    axis: AxisView
    edges_s: Annotated[list[Seconds], doc("of the bins; equally wide on the axis")]
    counts: list[int]
    beyond: Annotated[int, doc("samples right of the axis")]
    steps_s: Annotated[list[Seconds], doc("where the share of samples grows, thinned above 2,000")]
    shares: Annotated[list[float], doc("of the samples that are at most as long")]
    marks: list[Mark]


class Trend(Record, frozen=True, kw_only=True):
    """A straight line through the medians of the blocks (Theil and Sen)."""

    start_s: Annotated[Seconds, doc("at the middle of the first block")]
    end_s: Annotated[Seconds, doc("at the middle of the last block")]
    change: Annotated[float, doc("from the first block to the last, as a share of the median")]
    low: Annotated[
        float | None, doc("interval of the change, 99 %; null where there is none, or it says nothing")
    ]
    high: float | None
    trend: Annotated[str, doc("rising, falling, flat or undecided")]


class Course(Record, frozen=True, kw_only=True):
    """How the samples follow each other."""

    axis: AxisView
    index: Annotated[list[int], doc("of each drawn sample among all steady ones")]
    samples_s: list[Seconds]
    outliers: Annotated[list[int], doc("places in samples_s beyond three interquartile ranges")]
    num_samples: Annotated[int, doc("steady samples that were measured")]
    thinned: Annotated[str | None, doc("why fewer are drawn than were measured")]
    blocks: list[TimeBlock]
    trend: Annotated[Trend | None, doc("null for fewer than eight blocks")]
    warmup_axis: AxisView | None
    warmup_s: list[Seconds]
    warmup_steps: int


class MeasurementView(Record, frozen=True, kw_only=True):
    """A measurement, ready to be drawn."""

    name: str
    median_s: Seconds
    low_s: Annotated[Seconds, doc("interval of the median")]
    high_s: Seconds
    confidence: float
    steady: bool
    steps_per_sample: int
    num_samples: int
    effective_num_samples: float
    autocorrelation_time: float
    deadline_s: Seconds | None
    deadline_missed_share: float | None
    spread: Annotated[Spread | None, doc("null for fewer than eight samples")]
    course: Course | None
    correlogram: Annotated[Correlogram | None, doc("null for fewer than 20 samples")]


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """One block for the document's measurement."""
    del attachments
    if isinstance(document, (CheckDocument, BenchDocument)) and document.evidence.measurement is not None:
        yield block_of("measurement", measurement_view(document.evidence.measurement))


def measurement_view(m: Measurement) -> MeasurementView:
    """Everything that the drawings of a measurement show."""
    samples = np.asarray(m.samples_s, dtype=np.float64)
    every = max(round(m.num_samples / len(samples)), 1) if len(samples) else 1
    return MeasurementView(
        name=m.name,
        median_s=m.median_s,
        low_s=m.ci_low_s,
        high_s=m.ci_high_s,
        confidence=m.confidence,
        steady=m.steady,
        steps_per_sample=m.steps_per_sample,
        num_samples=m.num_samples,
        effective_num_samples=m.effective_num_samples,
        autocorrelation_time=m.autocorrelation_time,
        deadline_s=m.deadline_s,
        deadline_missed_share=m.deadline_missed_share,
        spread=_spread(m) if len(samples) >= FEWEST else None,
        course=_course(m, samples) if len(samples) else None,
        correlogram=correlogram(samples, every),
    )


def _spread(m: Measurement) -> Spread:
    scale = latency_scale(m)
    samples = [sample for sample in m.samples_s if sample <= scale.high]
    edges = scale.edges(bin_count(samples, scale))
    steps, shares = ecdf(np.asarray(m.samples_s, dtype=np.float64))
    return Spread(
        axis=axis_view(scale),
        edges_s=rounded(edges, 9),
        counts=count_bins(samples, edges),
        beyond=len(m.samples_s) - len(samples),
        steps_s=rounded(steps, 9),
        shares=rounded(shares, 5),
        marks=_marks(m),
    )


def ecdf(samples: Floats, most: int = MOST_STEPS) -> tuple[list[float], list[float]]:
    """The empirical distribution: values, and the share of samples that are at most as large.

    At most `most` steps, chosen evenly by rank; the first and the last are among them.

    >>> ecdf(np.array([3.0, 1.0, 1.0, 2.0]))
    ([1.0, 2.0, 3.0], [0.5, 0.75, 1.0])
    """
    values, counts = np.unique(samples, return_counts=True)
    shares = counts.cumsum() / len(samples)
    kept = thinned(len(values), most)
    return values[kept].tolist(), shares[kept].tolist()


def _marks(m: Measurement) -> list[Mark]:
    known = {quantile.quantile: quantile for quantile in m.quantiles}
    marks = [Mark(name="median", value_s=m.p50_s, low_s=m.ci_low_s, high_s=m.ci_high_s)]
    for share, value in ((0.9, m.p90_s), (0.95, m.p95_s), (0.99, m.p99_s)):
        bounds = known.get(share)
        low, high = (bounds.low_s, bounds.high_s) if bounds is not None else (None, None)
        marks.append(Mark(name=f"P{share * 100:g}", value_s=value, low_s=low, high_s=high))
    if m.deadline_s is not None:
        marks.append(Mark(name="deadline", value_s=m.deadline_s))
    return marks


def _course(m: Measurement, samples: Floats) -> Course:
    kept = extremes(m.samples_s, MOST_POINTS)
    places = thinned(m.num_samples, len(samples))
    quartiles = np.quantile(samples, [0.25, 0.75])
    reach = FAR_OUT * float(quartiles[1] - quartiles[0])
    low, high = float(quartiles[0]) - reach, float(quartiles[1]) + reach
    found = time_blocks(samples)
    return Course(
        axis=axis_view(fit([min(m.samples_s), last_shown(m)], pad=0.08)),
        index=[places[place] for place in kept],
        samples_s=rounded([m.samples_s[place] for place in kept]),
        outliers=[drawn for drawn, place in enumerate(kept) if not low <= samples[place] <= high],
        num_samples=m.num_samples,
        thinned=_thinned_words(m, len(kept)),
        blocks=[_moved(block, places) for block in found],
        trend=_trend(found),
        warmup_axis=axis_view(warmup_scale(m)) if m.warmup_s else None,
        warmup_s=rounded(m.warmup_s),
        warmup_steps=m.warmup_steps,
    )


def _thinned_words(m: Measurement, drawn: int) -> str | None:
    if drawn < len(m.samples_s):
        return f"{drawn:,} of {m.num_samples:,} samples are drawn: of each short stretch the least and the largest"
    if drawn < m.num_samples:
        return f"{drawn:,} of {m.num_samples:,} samples were kept, evenly over time; the figures are of all"
    return None


def _moved(block: TimeBlock, places: Sequence[int]) -> TimeBlock:
    """A block in numbers of measured samples instead of kept ones."""
    return TimeBlock(
        first=places[block.first],
        end=places[block.end - 1] + 1,
        median_s=block.median_s,
        low_s=block.low_s,
        high_s=block.high_s,
    )


def _trend(found: list[TimeBlock]) -> Trend | None:
    if not found or min(block.median_s for block in found) <= 0:
        return None
    middles = np.array([(block.first + block.end) / 2 for block in found])
    medians = np.array([block.median_s for block in found])
    drift = share_drift(middles, medians)
    if drift is None:
        return None
    length, typical = float(middles[-1] - middles[0]), float(np.median(medians))
    slope = drift.change * typical / length
    start = float(np.median(medians - slope * (middles - middles[0])))
    low, high = (None if end is None else end / HOUR_S * length for end in (drift.ci_low, drift.ci_high))
    if low is not None and high is not None and max(-low, high) > WIDEST:
        low, high = None, None
    return Trend(
        start_s=start,
        end_s=start + slope * length,
        change=drift.change,
        low=low,
        high=high,
        trend=drift.trend,
    )


def axis_view(scale: Scale) -> AxisView:
    """An axis as it travels."""
    return AxisView(low=scale.low, high=scale.high, log=scale.log)
