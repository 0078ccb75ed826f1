"""Replicas and groups of devices, which chance does not assign: each has its own machine, neighbours and drift.

Tests that count observations as independent roll back identical versions there in most rollouts, however valid they are at any time,
because the noise of one replica is the same for thousands of requests. What is compared here are blocks of time: the mean over the
replicas of one version less that over the others in the same block, against the same difference while both ran the old version. That
needs three replicas of each version, and a calm period long enough to know how the difference behaves; without them no stage is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from pyrometer.bench.comparison.always_valid import log_evidence, width
from pyrometer.rollout.counts import Counts, level_of
from pyrometer.rollout.judging.events import num_of
from pyrometer.rollout.judging.judgement import MOST_LOG, Judgement, MetricTest, conclude
from pyrometer.rollout.judging.margins import stage_allowed, stage_margin
from pyrometer.rollout.observed import NEW, OLD, Reported
from pyrometer.rollout.plan import FEWEST_CALM_BLOCKS, FEWEST_REPLICAS, Metric, Plan

CALM_EPOCH = 0
"""The epoch in which all replicas run the old version."""
FEWEST_BLOCKS = 20
TUNED_FOR = 100.0
"""Blocks at which the interval is narrowest."""
_MOST_CORRELATED = 0.2
"""From one block to the next: beyond it, blocks are joined in pairs."""


class _Blocks(NamedTuple):
    """Differences of new and old per block, in order of time; while calm and since."""

    calm: list[float]
    later: list[float]
    old: float
    """The mean of the old version since, or while calm where there is nothing since."""


class _Joined(NamedTuple):
    """Differences that are nearly independent; `inflation` is by how much the rest of it raises their variance."""

    calm: list[float]
    later: list[float]
    inflation: float | None


def judge_replicas(plan: Plan, reports: Sequence[Reported], *, next_share: float) -> Judgement:
    """What blocks of replicas say; "not proved" where they are too few to say anything, or said nothing for too long."""
    blocks = _by_block(reports)
    later = sum(is_later for is_later, _ in blocks)
    missing = _missing(blocks)
    tests = []
    for metric in plan.metrics if not missing else []:
        found = _test(plan, metric, blocks, next_share)
        if isinstance(found, str):
            missing = found
            break
        tests.append(found)
    if missing:
        is_final = max(later, len(blocks) - later) >= plan.most_blocks
        said = f"{missing}; {plan.most_blocks} blocks did not bring it" if is_final else missing
        return Judgement(outcome="not proved", reason=said, is_final=is_final)
    judged = conclude(tests)
    if judged.outcome != "undecided" or later < plan.most_blocks:
        return judged
    said = (
        f"{judged.reason}, after {later} blocks of {plan.block_s:g} s: take more replicas, or wider margins"
    )
    return Judgement(outcome="not proved", reason=said, is_final=True, tests=tests)


_Sides = dict[str, dict[str, Counts]]


def _by_block(reports: Sequence[Reported]) -> dict[tuple[bool, int], _Sides]:
    """Replicas of both versions, per block that three of each counted in."""
    found: dict[tuple[bool, int], _Sides] = {}
    for report in reports:
        sides = found.setdefault((report.epoch > CALM_EPOCH, report.block), {NEW: {}, OLD: {}})
        sides[report.arm][report.reporter] = report.counts
    return {
        key: sides for key, sides in sorted(found.items()) if min(map(len, sides.values())) >= FEWEST_REPLICAS
    }


def _missing(blocks: dict[tuple[bool, int], _Sides]) -> str:
    calm = sum(not later for later, _ in blocks)
    if not blocks:
        return f"replicas are not assigned by chance: {FEWEST_REPLICAS} of each version have to count in the same blocks"
    if calm < FEWEST_CALM_BLOCKS:
        return f"calm period: {calm} of {FEWEST_CALM_BLOCKS} blocks in which all replicas run the old version"
    return ""


def calm_blocks(plan: Plan, reports: Sequence[Reported]) -> int:
    """How many calm blocks the noise of every metric is known from; none while a longer calm period would tell it, or tell it better."""
    blocks = {key: sides for key, sides in _by_block(reports).items() if not key[0]}
    if len(blocks) < FEWEST_CALM_BLOCKS:
        return len(blocks)
    has_time = len(blocks) < plan.most_blocks
    is_known = all(_is_known(plan, metric, blocks, has_time=has_time) for metric in plan.metrics)
    return len(blocks) if is_known else 0


def _is_known(plan: Plan, metric: Metric, blocks: dict[tuple[bool, int], _Sides], *, has_time: bool) -> bool:
    """Whether the noise of a metric is known, and while there is time so well that it leaves half of the margin to the blocks since."""
    found = _differences(blocks, _value_of(metric))
    calm, _, inflation = _joined(found)
    if inflation is None or not has_time:
        return inflation is not None
    _, bearable = _limits(metric, found.old, stage_margin(metric, 1.0), stage_allowed(metric, 1.0))
    spread = max(float(np.var(calm, ddof=1)), _floor(metric, blocks, found.old)) * inflation
    return math.sqrt(spread / len(calm)) * _calm_width(len(calm), plan.alpha) <= bearable / 2


def _differences(blocks: dict[tuple[bool, int], _Sides], value: Callable[[Counts], float | None]) -> _Blocks:
    calm: list[float] = []
    later: list[float] = []
    levels: dict[bool, list[float]] = {False: [], True: []}
    for (is_later, _), sides in blocks.items():
        means = {}
        for arm, replicas in sides.items():
            values = [known for counts in replicas.values() if (known := value(counts)) is not None]
            means[arm] = sum(values) / len(values) if len(values) >= FEWEST_REPLICAS else None
        new, old = means[NEW], means[OLD]
        if new is None or old is None:
            continue
        (later if is_later else calm).append(new - old)
        levels[is_later].append(old)
    level = levels[True] or levels[False] or [0.0]
    return _Blocks(calm, later, sum(level) / len(level))


def _test(
    plan: Plan, metric: Metric, blocks: dict[tuple[bool, int], _Sides], next_share: float
) -> MetricTest | str:
    relative = metric.kind != "values"  # shares are compared by their difference, and told as a ratio
    sign = -1.0 if metric.worse == "less" else 1.0
    found = _differences(blocks, _value_of(metric))
    calm, later, inflation = _joined(found)
    alpha = plan.alpha / len(plan.metrics)
    margin = stage_margin(metric, next_share)
    test = MetricTest(
        metric=metric.name,
        needed=1 / alpha,
        margin=margin,
        outcome="undecided",
        num_new=len(later),
        num_old=len(calm),
    )
    if inflation is None:
        return f"{metric.name}: blocks of {plan.block_s:g} s go with each other; a longer calm period lets them be joined"
    if len(later) < FEWEST_BLOCKS:
        return test
    floor = _floor(metric, blocks, found.old)
    spread = max(float(np.var([*_centred(calm), *_centred(later)], ddof=2)), floor) * inflation
    errors = math.sqrt(spread / len(later)), math.sqrt(spread / len(calm))
    mean = sign * (float(np.mean(later)) - float(np.mean(calm)))
    reach_low, reach_high = (_reach(errors, len(later), len(calm), a) for a in (alpha, plan.alpha))
    harm, bearable = _limits(metric, found.old, margin, stage_allowed(metric, next_share))
    deviation = (mean - harm) / math.hypot(*errors)
    log_e = log_evidence(deviation, len(later), 2 * alpha, TUNED_FOR) if deviation > 0 else 0.0
    shown = [
        _ratio(sign * one, found.old, relative=relative)
        for one in (mean, mean - reach_low, mean + reach_high)
    ]
    low, high = sorted(shown[1:], key=lambda one: -math.inf if one is None else one)
    is_worse = mean - reach_low > harm
    outcome: Literal["worse", "safe", "undecided"] = (
        "worse" if is_worse else "safe" if mean + reach_high < bearable else "undecided"
    )
    e_value = (
        max(math.exp(min(log_e, MOST_LOG)), 1 / alpha)
        if is_worse
        else min(math.exp(min(log_e, MOST_LOG)), 1 / alpha)
    )
    return MetricTest(
        metric=metric.name, estimate=shown[0], ci_low=low, ci_high=high, e_value=e_value, needed=1 / alpha,
        margin=1 / margin if sign < 0 else margin, outcome=outcome, num_new=len(later), num_old=len(calm),
    )  # fmt: skip


def _value_of(metric: Metric) -> Callable[[Counts], float | None]:
    def value(counts: Counts) -> float | None:
        if metric.kind == "values":
            found = level_of(counts.buckets(metric.counted))
            return found.mean if found.num else None
        return num_of(metric, counts) / counts.num if counts.num else None

    return value


def _joined(found: _Blocks) -> _Joined:
    """Blocks joined in pairs until neighbours are nearly independent."""
    calm, later = found.calm, found.later
    while len(calm) >= FEWEST_BLOCKS:
        correlation = max(_neighbours(part) for part in (calm, later) if len(part) >= FEWEST_BLOCKS)
        if correlation <= _MOST_CORRELATED:
            kept = min(max(correlation, 0.0) + 1 / math.sqrt(len(calm)), 0.5)
            return _Joined(calm, later, (1 + kept) / (1 - kept))
        calm, later = _pairs(calm), _pairs(later)
    return _Joined(calm, later, None)


def _neighbours(values: Sequence[float]) -> float:
    centred = _centred(values)
    total = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / total if total > 0 else 0.0


def _centred(values: Sequence[float]) -> NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    centred: NDArray[np.float64] = array - array.mean()
    return centred


def _pairs(values: Sequence[float]) -> list[float]:
    return [(a + b) / 2 for a, b in zip(values[::2], values[1::2], strict=False)]


def _reach(errors: tuple[float, float], later: int, calm: int, alpha: float) -> float:
    """Half of alpha for the blocks since, at any time; half for the calm ones, which are looked at once."""
    return errors[0] * width(later, alpha, TUNED_FOR) + errors[1] * _calm_width(calm, alpha)


def _calm_width(calm: int, alpha: float) -> float:
    """Standard errors of the mean of the calm blocks."""
    return float(student.isf(alpha / 2, calm - 1))


def _floor(metric: Metric, blocks: dict[tuple[bool, int], _Sides], old: float) -> float:
    """The least variance of a difference of shares: that of chance alone, where hardly anything happened."""
    if metric.kind == "values":
        return 0.0
    nums = [counts.num for sides in blocks.values() for side in sides.values() for counts in side.values()]
    num = max(sum(nums), 1)
    per_side = max(num / len(blocks) / 2, 1.0)
    return 2 * max(old, 1 / num) / per_side


def _limits(metric: Metric, old: float, margin: float, allowed: float | None) -> tuple[float, float]:
    """Differences: beyond the first there is harm, below the second it is bearable."""
    if metric.kind == "values":
        return math.log(metric.tolerate), math.log(margin)
    if metric.kind == "agreement":
        return 0.0, (metric.limit or 0.0) * margin
    if metric.worse == "less":
        return old * (1 - 1 / metric.tolerate), old * (1 - 1 / margin)
    return old * (metric.tolerate - 1), max(old * (margin - 1), (allowed or 0.0) - old)


def _ratio(difference: float, old: float, *, relative: bool) -> float | None:
    if not relative:
        return math.exp(difference)
    return 1 + difference / old if old else None
