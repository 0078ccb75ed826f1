"""From pairs of fresh processes to gates. Pure: figures in, decisions out.

Pairs are looked at after 5, 8 and 12 of them, each look with its own error probability. Fewer decide nothing: two or three that are
alike by chance look as if nothing scattered. Within a metric the benchmarks
share it by the false discovery rate (Benjamini and Hochberg, 1995), and intervals are as wide as that asks for
(Benjamini and Yekutieli, 2005), so that an interval excludes 1 exactly where the test does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pyrometer.bench.comparison.decision import SMALLEST_EFFECT
from pyrometer.bench.distributions import student_quantile, student_tail
from pyrometer.guard.gate import GateOutcome
from pyrometer.quantity import format_percent

LOOKS = (5, 8, 12)
ALPHAS = (0.003, 0.007, 0.014)
"""Of each look, two-sided: of a suite of identical benchmarks fewer than one in a hundred runs alarms."""

CONFIDENCE = 1 - sum(ALPHAS)

TRIMMED = 0.2
"""Of the pairs at each end, once there are as many as at the last look."""


@dataclass(frozen=True)
class Judged:
    """One series of pairs at one look; ratios are natural logarithms, above 0 is worse.

    Attributes:
        outcome: null as long as more pairs could decide it.
        warning: worse, but within the limit.
    """

    outcome: GateOutcome | None
    mean: float
    low: float
    high: float
    p_value: float | None
    warning: str | None = None


def alpha_at(num_pairs: int) -> float:
    """Error probability of a look at so many pairs; that of an interval before the first look, which decides nothing, too.

    >>> alpha_at(5), alpha_at(6), alpha_at(12)
    (0.003, 0.003, 0.014)
    """
    reached = [alpha for look, alpha in zip(LOOKS, ALPHAS, strict=True) if num_pairs >= look]
    return reached[-1] if reached else ALPHAS[0]


def judge_family(
    series: Mapping[str, Sequence[float]], limits: Mapping[str, float], *, decisive: bool
) -> dict[str, Judged]:
    """Judge one metric of all benchmarks of a suite.

    A decisive metric regresses where it is proved worse by more than 2 %, unless it is proved to stay within its limit; then
    that is a warning. Any other regresses only where its whole interval lies beyond the limit.

    Args:
        series: log ratios by benchmark, above 0 is worse, one value per pair.
        limits: by benchmark, how much worse it may become, as a share.
        decisive: whether it is the kind of metric that the job is run for.

    >>> judged = judge_family({"a": [0.10, 0.11, 0.09, 0.10, 0.10]}, {"a": 0.05}, decisive=True)
    >>> judged["a"].outcome
    'regressed'
    """
    p_values = {name: p_value(values) for name, values in series.items()}
    alphas = {name: alpha_at(len(values)) for name, values in series.items()}
    shared = _shared_alphas(p_values, alphas)
    return {
        name: _judge(values, p_values[name], alphas[name], shared[name], limits[name], decisive=decisive)
        for name, values in series.items()
    }


def p_value(log_ratios: Sequence[float]) -> float | None:
    """Two-sided p of Student's test against no change; null for fewer than two pairs.

    >>> p_value([0.0, 0.0, 0.0]), p_value([0.1, 0.1, 0.1]), p_value([0.1])
    (1.0, 0.0, None)
    """
    if len(log_ratios) < 2:
        return None
    mean, error, freedom = _centre(log_ratios)
    if error <= 1e-12:
        return 1.0 if abs(mean) <= 1e-12 else 0.0
    return student_tail(mean / error, freedom)


def _shared_alphas(p_values: Mapping[str, float | None], alphas: Mapping[str, float]) -> dict[str, float]:
    """The error probability of each interval: its own times the share of the family that was discovered, at least one."""
    scaled = sorted((1.0 if p is None else p) / alphas[name] for name, p in p_values.items())
    size = len(scaled)
    discovered = max((rank for rank, p in enumerate(scaled, 1) if p <= rank / size), default=0)
    return {name: alpha * max(discovered, 1) / size for name, alpha in alphas.items()}


def interval(log_ratios: Sequence[float], alpha: float) -> tuple[float, float, float]:
    """Centre of the pairs with its interval; infinite for fewer than two."""
    if len(log_ratios) < 2:
        return float(np.mean(log_ratios)), -math.inf, math.inf
    mean, error, freedom = _centre(log_ratios)
    half = student_quantile(1 - alpha / 2, freedom) * error
    return mean, mean - half, mean + half


def _centre(log_ratios: Sequence[float]) -> tuple[float, float, int]:
    """Centre, standard error and degrees of freedom: Student's, and from the last look on Yuen's, of the trimmed mean.

    One process in several may be slow for its whole life by where its memory lies. Trimming a fifth at each end (Yuen, 1974)
    lets such pairs count for little, where there are enough others.
    """
    ordered = np.sort(np.asarray(log_ratios, dtype=np.float64))
    n = len(ordered)
    cut = int(TRIMMED * n) if n >= LOOKS[-1] else 0
    kept = n - 2 * cut
    drawn_in = np.clip(ordered, ordered[cut], ordered[n - cut - 1])
    error = math.sqrt((n - 1) * float(np.var(drawn_in, ddof=1)) / (kept * (kept - 1)))
    return float(np.mean(ordered[cut : n - cut])), error, kept - 1


def _judge(
    log_ratios: Sequence[float], p: float | None, alpha: float, shared: float, limit: float, *, decisive: bool
) -> Judged:
    mean, low, high = interval(log_ratios, shared)
    if len(log_ratios) < LOOKS[0]:
        return Judged(None, mean, low, high, p)
    effect, margin = math.log1p(min(SMALLEST_EFFECT, 0.4 * limit)), math.log1p(limit)
    if low > 0 and mean > effect:
        within = high < margin if decisive else low <= margin
        if not within:
            return Judged("regressed", mean, low, high, p)
        where = "within" if high <= margin else "not proved beyond"
        warning = (
            f"worse by {format_percent(math.expm1(mean), 2)}, {where} the limit of {format_percent(limit, 2)}"
        )
        return Judged("unchanged", mean, low, high, p, warning)
    if high < 0 and mean < -effect:
        return Judged("improved", mean, low, high, p)
    _, near_low, near_high = interval(log_ratios, alpha)
    if near_high < margin:
        return Judged("unchanged", mean, near_low, near_high, p)
    return Judged(None, mean, low, high, p)
