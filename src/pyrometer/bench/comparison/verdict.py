"""The outcome of a paired comparison, and the few sentences that may be said about it."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.bench.quality import Caveat
from pyrometer.quantity import Ratio, Seconds, format_ratio, format_seconds
from pyrometer.record import Record, doc

Outcome = Literal["faster", "slower", "same", "undecided"]
Metric = Literal["wall_min", "cpu", "device"]


class ReferenceTests(Record, frozen=True, kw_only=True):
    """Textbook statistics for readers who expect them; never used for the verdict."""

    welch_t: float | None
    welch_p: float | None
    cohen_d: float | None
    cohen_size: Annotated[str | None, doc("negligible, small, medium or large at 0.2, 0.5 and 0.8")]
    mann_whitney_p: float | None


class TailRatio(Record, frozen=True, kw_only=True):
    """Ratio of a tail quantile, guarded apart because a minimum hides regressions of the tail."""

    quantile: float
    ratio: Ratio
    ci_low: Ratio
    ci_high: Ratio


class Verdict(Record, frozen=True, kw_only=True):
    """Outcome of a paired, interleaved comparison: ratio = time of the candidate over time of the baseline."""

    outcome: Outcome
    ratio: Ratio
    ci_low: Annotated[Ratio | None, doc("null while there are too few blocks to bound it")]
    ci_high: Annotated[Ratio | None, doc("null while there are too few blocks to bound it")]
    confidence: Annotated[float, doc("coverage of the interval, all looks together")]
    margin: Annotated[float, doc("how far from 1 the interval may reach and still be called the same")]
    smallest_effect: Annotated[float, doc("an estimate nearer to 1 than this is not called a difference")]
    num_blocks: Annotated[int, doc("paired blocks that were compared")]
    num_processes: Annotated[
        int | None, doc("fresh processes, where they are what was counted; null in one process")
    ] = None
    elapsed_s: Seconds

    blocks_s: Annotated[
        Seconds, doc("part of elapsed_s that the blocks took, without first calls and warm-up")
    ] = 0.0
    baseline: str = "A"
    candidate: str = "B"
    metric: Annotated[Metric, doc("what was compared, fixed before looking")] = "wall_min"
    calls_per_batch: int = 1
    baseline_s: Annotated[
        Seconds | None, doc("median step of the baseline, by its clock, whatever the metric")
    ] = None
    candidate_s: Seconds | None = None
    wall_ratio: Annotated[Ratio | None, doc("ratio of wall time, where another metric decided")] = None
    isolated_ratio: Annotated[Ratio | None, doc("ratio of the sides each run alone; devices only")] = None
    tails: list[TailRatio] = []
    log_ratios: Annotated[
        list[float], doc("ln(candidate/baseline), one value per block; per process where those were counted")
    ] = []
    slot_effect: Annotated[
        float | None, doc("ln ratio of first-run to second-run batches inside a block")
    ] = None
    interrupted: Annotated[bool, doc("whether Ctrl-C ended it; what was measured is kept")] = False
    needed_s: Annotated[Seconds | None, doc("how much longer would decide it, where undecided")] = None
    reason: Annotated[str | None, doc("why it is undecided")] = None
    reference: ReferenceTests | None = None
    p_value: Annotated[
        float | None, doc("two-sided Wilcoxon signed-rank; for corrections over many comparisons")
    ] = None
    seed: int = 0
    caveats: list[Caveat] = []


def sentence(verdict: Verdict) -> str:
    """The verdict in its fixed words.

    >>> base = dict(confidence=0.99, margin=0.05, smallest_effect=0.02, num_blocks=40, elapsed_s=1.0)
    >>> sentence(Verdict(outcome="faster", ratio=0.704, ci_low=0.685, ci_high=0.725, **base))
    '1.42× faster (1.38–1.46)'
    >>> sentence(Verdict(outcome="same", ratio=1.0, ci_low=0.99, ci_high=1.01, **base))
    'no change (within ±5 %)'
    >>> sentence(Verdict(outcome="undecided", ratio=1.0, ci_low=0.9, ci_high=1.1, needed_s=14.2, **base))
    'undecided: about 14.2 s more would resolve 5 %'
    """
    margin = f"{verdict.margin * 100:.3g} %"
    if verdict.outcome in {"faster", "slower"} and verdict.ci_low is not None and verdict.ci_high is not None:
        return format_ratio(verdict.ratio, verdict.ci_low, verdict.ci_high)
    if verdict.outcome == "same":
        return f"no change (within ±{margin})"
    if verdict.reason is not None:
        return f"undecided: {verdict.reason}"
    if verdict.needed_s is None:
        return f"undecided: too few blocks to resolve {margin}"
    return f"undecided: about {format_seconds(verdict.needed_s)} more would resolve {margin}"
