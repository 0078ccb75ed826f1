"""From the blocks of a trial to the verdict: ratio, interval, tails, caveats, and what would decide it if nothing did."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.comparison.decision import Decision, DecisionRule
from pyrometer.bench.comparison.pairing import blocks_needed, hodges_lehmann, signed_rank_p
from pyrometer.bench.comparison.textbook import reference_tests
from pyrometer.bench.comparison.trial import Trial
from pyrometer.bench.comparison.verdict import TailRatio, Verdict
from pyrometer.bench.quality import Caveat, CaveatCode, caveat
from pyrometer.quantity import Seconds, format_percent, format_seconds, significant

TAIL = 0.95
NUM_RESAMPLES = 400
WIDE = 1.25
"""Upper over lower bound of the ratio from which a difference is told with a caveat."""


def conclude(trial: Trial, candidate: int) -> Verdict:
    """The verdict on one candidate of a trial that has run."""
    if not trial.blocks.rows:
        return _without_blocks(trial, candidate)
    blocks, decision = trial.blocks, trial.decisions[candidate]
    isolated = trial.isolated.get(candidate)
    disturbed = _disturbed(decision, isolated)
    log_ratios = blocks.log_ratios(candidate)
    baseline_times, candidate_times = blocks.times(0), blocks.times(candidate)
    tail = tail_ratio(baseline_times, candidate_times, trial.rule)
    wall = hodges_lehmann(blocks.log_ratios(candidate, "wall_min"), trial.rule.alpha_per_look)
    return Verdict(
        outcome="undecided" if disturbed else decision.outcome or "undecided",
        ratio=math.exp(decision.estimate),
        ci_low=_bound(decision.low),
        ci_high=_bound(decision.high),
        confidence=trial.rule.confidence,
        margin=trial.rule.margin,
        smallest_effect=trial.rule.smallest_effect,
        num_blocks=len(log_ratios),
        elapsed_s=trial.elapsed_s,
        blocks_s=trial.blocks_s,
        baseline=trial.sides[0].name,
        candidate=trial.sides[candidate].name,
        metric=blocks.metric,
        calls_per_batch=blocks.calls,
        baseline_s=blocks.median_s(0),
        candidate_s=blocks.median_s(candidate),
        wall_ratio=None if blocks.metric == "wall_min" else math.exp(wall[0]),
        isolated_ratio=None if isolated is None else math.exp(isolated),
        tails=[tail] if tail else [],
        log_ratios=log_ratios.tolist(),
        slot_effect=blocks.slot_effect(),
        needed_s=_needed_s(trial, log_ratios, decision),
        reason=_reason(trial, decision, disturbed=disturbed),
        reference=reference_tests(np.concatenate(baseline_times), np.concatenate(candidate_times)),
        p_value=signed_rank_p(log_ratios),
        seed=trial.seed,
        interrupted=trial.interrupted,
        caveats=list(_caveats(trial, decision, tail, wall, isolated)),
    )


def _without_blocks(trial: Trial, candidate: int) -> Verdict:
    """All that can be said when a single step is longer than the budget."""
    baseline, other = trial.sides[0], trial.sides[candidate]
    block_s = 2 * (baseline.first_call_s + other.first_call_s)
    needed_s = block_s * trial.rule.looks[0]
    return Verdict(
        outcome="undecided",
        ratio=other.first_call_s / baseline.first_call_s,
        ci_low=None,
        ci_high=None,
        confidence=trial.rule.confidence,
        margin=trial.rule.margin,
        smallest_effect=trial.rule.smallest_effect,
        num_blocks=0,
        elapsed_s=trial.elapsed_s,
        baseline=baseline.name,
        candidate=other.name,
        baseline_s=baseline.first_call_s,
        candidate_s=other.first_call_s,
        seed=trial.seed,
        needed_s=needed_s,
        reason=f"a paired block takes about {format_seconds(block_s)}, more than the budget; the ratio is of the first "
        f"calls; --budget {math.ceil(needed_s)}s gives {trial.rule.looks[0]} blocks",
    )


def _needed_s(trial: Trial, log_ratios: Floats, decision: Decision) -> Seconds | None:
    """How much longer would decide it: until the interval is as narrow as the nearest limit of the margin is far."""
    if decision.outcome or decision.drifting or len(log_ratios) < 4:
        return None
    effect, margin = math.log1p(trial.rule.smallest_effect), math.log1p(trial.rule.margin)
    distance = max(abs(margin - abs(decision.estimate)), abs(abs(decision.estimate) - effect), effect / 2)
    more = max(blocks_needed(log_ratios, distance) - len(log_ratios), len(log_ratios) // 4, 1)
    return more * trial.blocks_s / len(log_ratios)


def _reason(trial: Trial, decision: Decision, *, disturbed: bool) -> str | None:
    if disturbed:
        return "the sides disturb each other: alone, each for itself, they differ the other way"
    if decision.outcome:
        return None
    if trial.interrupted:
        return f"interrupted after {len(trial.blocks.rows)} blocks"
    if decision.drifting:
        return "the effect itself drifts; run each side in fresh processes (--processes 5)"
    return None


def _disturbed(decision: Decision, isolated: float | None) -> bool:
    """Whether the sides, each run alone, differ clearly in the other direction than in turn."""
    if isolated is None or decision.outcome not in {"faster", "slower"}:
        return False
    return isolated * decision.estimate < 0 and abs(isolated) > abs(decision.estimate) / 2


def _caveats(
    trial: Trial,
    decision: Decision,
    tail: TailRatio | None,
    wall: tuple[float, float, float],
    isolated: float | None,
) -> Iterator[Caveat]:
    yield from trial.doubts
    slot = trial.blocks.slot_effect()
    if isolated is not None and _disturbed(decision, isolated):
        yield caveat(
            CaveatCode.SIDES_DISTURB,
            f"in turn the ratio is {significant(math.exp(decision.estimate))}, each side alone {significant(math.exp(isolated))}",
            "compare them in the setting that they will run in, one at a time or together",
        )
    if not trial.warm:
        yield caveat(
            CaveatCode.NOT_STEADY,
            "a side was still warming up when the blocks began",
            "give it a larger --budget",
        )
    if decision.outcome in {"faster", "slower"} and decision.high - decision.low > math.log(WIDE):
        low, high = (significant(math.exp(bound)) for bound in (decision.low, decision.high))
        yield caveat(
            CaveatCode.WIDE_INTERVAL,
            f"the direction is certain, how much is not: the ratio is anywhere from {low} to {high}",
            f"narrow it with --thorough --budget {max(math.ceil(4 * trial.budget_s), 60)}s, other programs stopped",
        )
    if decision.outcome in {"faster", "slower"} and abs(slot) > abs(decision.estimate):
        yield caveat(
            CaveatCode.SLOT_EFFECT,
            f"the place inside a block matters more ({format_percent(abs(slot), 2)}) than the difference found",
            "compare in fresh processes (--processes 5)",
        )
    if decision.outcome == "same" and tail is not None and tail.ci_low > 1 + 2 * trial.rule.margin:
        yield caveat(
            CaveatCode.TAIL_SLOWER,
            f"P95 is {significant(tail.ratio)}× ({significant(tail.ci_low)}–{significant(tail.ci_high)})",
            "typical steps are the same but the slow ones are slower; look at the histogram of each side",
        )
    if trial.blocks.metric == "cpu" and decision.outcome and not _overlap(wall, decision):
        yield caveat(
            CaveatCode.WALL_DISAGREES,
            f"by wall time the ratio is {significant(math.exp(wall[0]))}, outside the interval of CPU time",
            "one side waits or runs in parallel more than the other; wall time is what users feel",
        )


def _overlap(wall: tuple[float, float, float], decision: Decision) -> bool:
    return wall[1] <= decision.high and decision.low <= wall[2]


def _bound(log_ratio: float) -> float | None:
    return math.exp(log_ratio) if math.isfinite(log_ratio) else None


def tail_ratio(baseline: list[Floats], candidate: list[Floats], rule: DecisionRule) -> TailRatio | None:
    """Ratio of the 95th percentiles of all calls, with a bootstrap interval over blocks; `None` for few calls.

    Blocks are resampled, never single calls, because calls inside a block are alike.
    """
    if len(baseline) < 20 or sum(map(len, baseline)) < 100:
        return None
    a, b = np.stack(baseline), np.stack(candidate)
    draws = np.random.default_rng(0).integers(0, len(a), size=(NUM_RESAMPLES, len(a)))
    logs = np.array([math.log(_tail(b[rows]) / _tail(a[rows])) for rows in draws])
    low, high = np.quantile(logs, [(1 - rule.confidence) / 2, (1 + rule.confidence) / 2])
    return TailRatio(
        quantile=TAIL, ratio=_tail(b) / _tail(a), ci_low=float(math.exp(low)), ci_high=float(math.exp(high))
    )


def _tail(times: Floats) -> float:
    return float(np.quantile(times, TAIL))
