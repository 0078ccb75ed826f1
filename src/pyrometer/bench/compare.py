"""Comparing workloads: paired, interleaved, with random order, stopped as soon as it is decided."""

from __future__ import annotations

import contextlib
import gc
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.clock import Clock, clock_for
from pyrometer.bench.decision import (
    DEFAULT_CONFIDENCE,
    DEFAULT_MARGIN,
    LOOKS,
    THOROUGH_LOOKS,
    THOROUGH_MARGIN,
    Decision,
    Rule,
    decide,
)
from pyrometer.bench.dynamo import compile_seconds
from pyrometer.bench.interleaving import Blocks, Side, choose_metric, warm_up
from pyrometer.bench.measure import Progress
from pyrometer.bench.pairing import blocks_needed, hodges_lehmann, signed_rank_p
from pyrometer.bench.quality import Caveat, Doubt, caveat
from pyrometer.bench.textbook import reference_tests
from pyrometer.bench.verdict import TailRatio, Verdict
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds, format_percent, format_seconds, significant
from pyrometer.workload.workload import Workload

DEFAULT_BUDGET_S = 30.0
THOROUGH_BUDGET_S = 120.0
WARMUP_SHARE = 0.2
TAIL = 0.95
NUM_RESAMPLES = 400


def compare(
    a: Workload,
    b: Workload,
    *,
    budget_s: Seconds | None = None,
    margin: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    seed: int = 0,
    thorough: bool = False,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Decide whether `b` is faster than, slower than, or the same as `a`.

    Both sides run in turn in one process, in blocks of random mirrored order. What is compared (fastest call, CPU time,
    device time) is fixed after the warm-up and before the first block. The verdict may be `undecided`.

    Args:
        a: the baseline.
        b: the candidate; the ratio is its time over the baseline's.
        budget_s: no block is begun after so many seconds; first calls (compilation) do not count. 30 s by default.
        margin: half-width of the zone that is called the same, 0.05 by default.
        confidence: coverage of the interval; false alarms are rarer than one minus this.
        seed: of the coin that orders the blocks.
        thorough: look at up to 640 blocks in 120 s, with a margin of 0.02.
        clock: by default the right one for the device.
        progress: told how far it is, between blocks.

    Raises:
        InputError: a side cannot be prepared, or the sides are on different devices.
        UserProgramError: a step raised.

    >>> import pyrometer as pm, torch
    >>> work = pm.Inference(torch.nn.Linear(8, 2), torch.randn(4, 8))
    >>> pm.compare(work, work, budget_s=2).outcome in {"same", "undecided"}
    True
    """
    verdicts = compare_many(
        a,
        [b],
        budget_s=budget_s,
        margin=margin,
        confidence=confidence,
        seed=seed,
        thorough=thorough,
        clock=clock,
        progress=progress,
    )
    return verdicts[0]


def compare_many(
    baseline: Workload,
    candidates: Sequence[Workload],
    *,
    budget_s: Seconds | None = None,
    margin: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    seed: int = 0,
    thorough: bool = False,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Compare several candidates against one baseline in the same blocks; see `compare`.

    All sides are rotated within each block. The error probability is shared among the candidates, so that the chance of
    any false alarm in the whole list stays below one minus `confidence`.
    """
    if not candidates:
        raise InputError("compare: no candidate; give at least one workload to compare with the baseline")
    rule = Rule(
        confidence=confidence,
        margin=margin if margin is not None else (THOROUGH_MARGIN if thorough else DEFAULT_MARGIN),
        looks=THOROUGH_LOOKS if thorough else LOOKS,
        num_comparisons=len(candidates),
    )
    limit_s = budget_s if budget_s is not None else (THOROUGH_BUDGET_S if thorough else DEFAULT_BUDGET_S)
    if limit_s <= 0:
        raise InputError(f"budget: got {limit_s} s; it must be positive, for example 20 s")
    with contextlib.ExitStack() as stack:
        sides = open_sides(stack, [baseline, *candidates], clock)
        trial = _Trial(sides, rule, limit_s, seed, progress)
        trial.go()
        return [trial.verdict(i) for i in range(1, len(sides))]


def open_sides(
    stack: contextlib.ExitStack, works: Sequence[Workload], clock: Clock | None = None
) -> list[Side]:
    """Open every workload until the stack is closed.

    Raises:
        InputError: a workload cannot be prepared, or they are on different devices.
    """
    sides: list[Side] = []
    for work, name in zip(works, _names(works), strict=True):
        session = stack.enter_context(work.open())
        sides.append(Side(name, session, clock or clock_for(session.device)))
    devices = {side.session.device.type for side in sides}
    if len(devices) > 1:
        raise InputError(f"compare: the sides are on {' and '.join(sorted(devices))}; put them on one device")
    return sides


def _names(works: Sequence[Workload]) -> list[str]:
    """Names that tell the sides apart: the workload's, its variant's, or a letter."""
    names = [
        work.name if work.config.label == "as written" else f"{work.name} ({work.config.label})"
        for work in works
    ]
    if len(set(names)) == len(names):
        return names
    return [f"{chr(ord('A') + i % 26)}: {name}" for i, name in enumerate(names)]


@dataclass
class _Trial:
    """One comparison under way."""

    sides: list[Side]
    rule: Rule
    budget_s: Seconds
    seed: int
    progress: Progress | None
    interrupted: bool = False
    warm: bool = True
    blocks_s: Seconds = 0.0
    decisions: dict[int, Decision] = field(default_factory=dict)

    def go(self) -> None:
        """Warm up, choose the metric, run blocks until every candidate is decided or the budget is spent.

        Raises:
            KeyboardInterrupt: before the first block was complete, so that there is nothing to keep.
        """
        gc.collect()
        self._opened_s = self._now_s()
        compiled_before = compile_seconds()
        for side in self.sides:
            side.first_call_s = side.batch(1).times_s[0]
        self._started_s = self._now_s()
        self.blocks = Blocks(self.sides, "wall_min", 1, self.seed)
        compiled = compile_seconds() != compiled_before
        if max(side.first_call_s for side in self.sides) > self.budget_s and not compiled:
            return
        self.warm = warm_up(self.sides, self.budget_s * WARMUP_SHARE)
        metric, calls = choose_metric(self.sides)
        self.blocks = Blocks(self.sides, metric, calls, self.seed)
        self._blocks_started_s = self._now_s()
        try:
            self._run_blocks()
        except KeyboardInterrupt:
            if not self.blocks.rows:
                raise
            self.interrupted = True
        self.blocks_s = self._now_s() - self._blocks_started_s
        self._look()

    def _now_s(self) -> Seconds:
        return self.sides[0].clock.host_ns() * 1e-9

    @property
    def _elapsed_s(self) -> Seconds:
        return self._now_s() - self._started_s

    def _run_blocks(self) -> None:
        for look in self.rule.looks:
            while len(self.blocks.rows) < look:
                if self._block_would_overrun():
                    return
                self.blocks.run()
                if self.progress is not None:
                    self.progress(min(self._elapsed_s / self.budget_s, 1.0), f"block {len(self.blocks.rows)}")
            self._look()
            if all(decision.outcome for decision in self.decisions.values()):
                return

    def _block_would_overrun(self) -> bool:
        """Whether the next block would end after the budget; the first one is always run."""
        done = len(self.blocks.rows)
        if done == 0:
            return False
        return self._elapsed_s + (self._now_s() - self._blocks_started_s) / done > self.budget_s

    def _look(self) -> None:
        for candidate in range(1, len(self.sides)):
            earlier = self.decisions.get(candidate)
            if earlier is None or earlier.outcome is None:
                self.decisions[candidate] = decide(self.blocks.log_ratios(candidate), self.rule)

    def verdict(self, candidate: int) -> Verdict:
        """The verdict on one candidate."""
        if not self.blocks.rows:
            return self._without_blocks(candidate)
        blocks = self.blocks
        decision = self.decisions[candidate]
        log_ratios = blocks.log_ratios(candidate)
        baseline_times, candidate_times = blocks.times(0), blocks.times(candidate)
        tail = tail_ratio(baseline_times, candidate_times, self.rule)
        wall = hodges_lehmann(blocks.log_ratios(candidate, "wall_min"), self.rule.alpha_per_look)
        return Verdict(
            outcome=decision.outcome or "undecided",
            ratio=math.exp(decision.estimate),
            ci_low=_bound(decision.low),
            ci_high=_bound(decision.high),
            confidence=self.rule.confidence,
            margin=self.rule.margin,
            smallest_effect=self.rule.smallest_effect,
            num_blocks=len(log_ratios),
            elapsed_s=self._now_s() - self._opened_s,
            blocks_s=self.blocks_s,
            baseline=self.sides[0].name,
            candidate=self.sides[candidate].name,
            metric=blocks.metric,
            calls_per_batch=blocks.calls,
            baseline_s=blocks.median_s(0),
            candidate_s=blocks.median_s(candidate),
            wall_ratio=None if blocks.metric == "wall_min" else math.exp(wall[0]),
            tails=[tail] if tail else [],
            log_ratios=log_ratios.tolist(),
            slot_effect=blocks.slot_effect(),
            needed_s=self._needed_s(log_ratios, decision),
            reason=self._reason(decision),
            reference=reference_tests(np.concatenate(baseline_times), np.concatenate(candidate_times)),
            p_value=signed_rank_p(log_ratios),
            seed=self.seed,
            caveats=self._caveats(decision, tail, wall),
        )

    def _without_blocks(self, candidate: int) -> Verdict:
        """All that can be said when a single step is longer than the budget."""
        baseline, other = self.sides[0], self.sides[candidate]
        block_s = 2 * (baseline.first_call_s + other.first_call_s)
        return Verdict(
            outcome="undecided",
            ratio=other.first_call_s / baseline.first_call_s,
            ci_low=None,
            ci_high=None,
            confidence=self.rule.confidence,
            margin=self.rule.margin,
            smallest_effect=self.rule.smallest_effect,
            num_blocks=0,
            elapsed_s=self._now_s() - self._opened_s,
            baseline=baseline.name,
            candidate=other.name,
            baseline_s=baseline.first_call_s,
            candidate_s=other.first_call_s,
            seed=self.seed,
            needed_s=block_s * self.rule.looks[0],
            reason=f"a paired block takes about {format_seconds(block_s)}, more than the budget; the ratio is of the "
            f"first calls; --budget {math.ceil(block_s * self.rule.looks[0])}s gives {self.rule.looks[0]} blocks",
        )

    def _needed_s(self, log_ratios: Floats, decision: Decision) -> Seconds | None:
        """How much longer would decide it: until the interval is as narrow as the nearest limit of the margin is far."""
        if decision.outcome or decision.drifting or len(log_ratios) < 4:
            return None
        effect, margin = math.log1p(self.rule.smallest_effect), math.log1p(self.rule.margin)
        distance = max(abs(margin - abs(decision.estimate)), abs(abs(decision.estimate) - effect), effect / 2)
        more = max(blocks_needed(log_ratios, distance) - len(log_ratios), len(log_ratios) // 4, 1)
        return more * self.blocks_s / len(log_ratios)

    def _reason(self, decision: Decision) -> str | None:
        if decision.outcome:
            return None
        if self.interrupted:
            return f"interrupted after {len(self.blocks.rows)} blocks"
        if decision.drifting:
            return "the effect itself drifts; run each side in fresh processes (--processes 5)"
        return None

    def _caveats(
        self, decision: Decision, tail: TailRatio | None, wall: tuple[float, float, float]
    ) -> list[Caveat]:
        slot = self.blocks.slot_effect()
        found: list[Caveat] = []
        if not self.warm:
            found.append(
                caveat(
                    Doubt.NOT_STEADY, "a side was still warming up when the blocks began", "raise the budget"
                )
            )
        if decision.outcome in {"faster", "slower"} and abs(slot) > abs(decision.estimate):
            found.append(
                caveat(
                    Doubt.SLOT_EFFECT,
                    f"the place inside a block matters more ({format_percent(abs(slot), 2)}) than the difference found",
                    "compare in fresh processes (--processes 5)",
                )
            )
        if decision.outcome == "same" and tail is not None and tail.ci_low > 1 + 2 * self.rule.margin:
            found.append(
                caveat(
                    Doubt.TAIL_SLOWER,
                    f"P95 is {significant(tail.ratio)}× ({significant(tail.ci_low)}–{significant(tail.ci_high)})",
                    "typical steps are the same but the slow ones are slower; look at the histogram of each side",
                )
            )
        if self.blocks.metric == "cpu" and decision.outcome and not _overlap(wall, decision):
            found.append(
                caveat(
                    Doubt.WALL_DISAGREES,
                    f"by wall time the ratio is {significant(math.exp(wall[0]))}, outside the interval of CPU time",
                    "one side waits or runs in parallel more than the other; wall time is what users feel",
                )
            )
        return found


def _overlap(wall: tuple[float, float, float], decision: Decision) -> bool:
    return wall[1] <= decision.high and decision.low <= wall[2]


def _bound(log_ratio: float) -> float | None:
    return math.exp(log_ratio) if math.isfinite(log_ratio) else None


def tail_ratio(baseline: list[Floats], candidate: list[Floats], rule: Rule) -> TailRatio | None:
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
