"""Comparing two targets beyond one process: fresh processes are what is counted.

Where code and data happen to lie in memory makes identical programs differ by 1 to 4 % for the whole life of a process. Blocks
within one process cannot see that, so that their interval is too narrow for a claim about the next process. Here every
process loads both targets anew and gives one estimate; the interval is Student's over the processes (Kalibera and Jones,
Rigorous benchmarking in reasonable time, 2013). Starting a process costs more than 40 blocks, which is why there are not more.
"""

from __future__ import annotations

import contextlib
import gc
import math
import random
import time
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.comparison.decision import (
    DEFAULT_CONFIDENCE,
    DEFAULT_MARGIN,
    Decision,
    DecisionRule,
    outcome_of,
)
from pyrometer.bench.comparison.pairing import trimmed_mean
from pyrometer.bench.comparison.verdict import Metric, Verdict
from pyrometer.bench.distributions import student_quantile, student_tail
from pyrometer.bench.fresh import run_fresh
from pyrometer.bench.quality import Caveat, CaveatCode, caveat
from pyrometer.bench.stage import Progress
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds, format_percent, format_seconds
from pyrometer.record import Record, doc
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import Target, TargetSpec

LOOKS = (5, 8, 12)
DEFAULT_BUDGET_S = 600.0
NUM_BLOCKS = 40
NUM_BLOCKS_SHORT = 60
SHORT_STEP_S = 1e-3
FEWEST_BLOCKS = 20
WARMUP_S = 10.0


class ProcessRequest(Record, frozen=True, kw_only=True):
    """What one fresh process is asked to do."""

    baseline: TargetSpec
    candidate: TargetSpec
    candidate_first: Annotated[bool, doc("which target is loaded first")]
    seed: Annotated[int, doc("of the coin that orders the blocks")]
    metric: Annotated[Metric | None, doc("null in the first process, which chooses it")] = None
    calls: int = 1
    limit_s: Annotated[Seconds, doc("no block is begun after so many seconds of blocks")]


class ProcessBlocks(Record, frozen=True, kw_only=True):
    """What the blocks of one process say."""

    baseline: Annotated[str, doc("name of the baseline")]
    candidate: str
    metric: Metric
    calls: int
    log_ratios: Annotated[list[float], doc("one value per block")]
    baseline_s: Seconds
    candidate_s: Seconds
    slot_effect: float
    blocks_s: Seconds
    warm: bool

    @property
    def estimate(self) -> float:
        """ln(candidate/baseline) of this process: the mean of the blocks without the outer fifths."""
        return trimmed_mean(np.asarray(self.log_ratios))


def replicate(
    a: Target,
    b: Target,
    *,
    processes: int = LOOKS[-1],
    budget_s: Seconds | None = None,
    margin: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    seed: int = 0,
    progress: Progress | None = None,
) -> Verdict:
    """Decide whether target `b` is faster than, slower than, or the same as `a`, counting fresh processes.

    Each process loads both targets, in an order that a coin decides, and runs 40 mirrored blocks (60 below 1 ms). It is looked
    at after 5, 8 and 12 processes, as far as there are so many, and after the last; the error probability is shared among
    the looks. Ctrl-C keeps the processes that have ended.

    Args:
        a: the baseline.
        b: the candidate.
        processes: how many at most; at least 3.
        budget_s: no process is begun that would end after so many seconds; 600 s by default.
        margin: half-width of the zone that is called the same, 0.05 by default.
        confidence: coverage of the interval.
        seed: of the orders of loading and of the blocks.
        progress: told how far it is, between processes.

    Raises:
        InputError: too few processes, or a target that cannot be used.
        UserProgramError: a target failed, or its process was killed.
    """
    if processes < 3:
        raise InputError(f"processes: got {processes}; an interval needs at least 3, and 5 to decide much")
    looks = (*(look for look in LOOKS if look < processes), processes)
    rule = DecisionRule(
        confidence=confidence, margin=DEFAULT_MARGIN if margin is None else margin, looks=looks
    )
    limit_s = DEFAULT_BUDGET_S if budget_s is None else budget_s
    if not limit_s > 0:
        raise InputError(f"budget: got {limit_s} s; it must be positive, for example 10min")
    replication = _Replication(a.spec, b.spec, rule, limit_s, seed)
    replication.go(progress or (lambda _share, _what: None))
    return replication.verdict()


def run_process(request: ProcessRequest) -> ProcessBlocks:
    """Load both targets and run the blocks; what every fresh process does."""
    from pyrometer.bench.comparison.interleaving import Blocks, choose_metric, require_genuine, warm_up
    from pyrometer.bench.comparison.trial import open_sides

    specs = [request.baseline, request.candidate]
    order = (1, 0) if request.candidate_first else (0, 1)
    loaded = {index: load_workload(specs[index].target()) for index in order}
    with contextlib.ExitStack() as stack:
        sides = open_sides(stack, [loaded[0], loaded[1]])
        gc.collect()
        for side in sides:
            side.first_call_s = side.batch(1).times_s[0]
        warm = warm_up(sides, WARMUP_S)
        require_genuine(sides)
        metric, calls = (request.metric, request.calls) if request.metric else choose_metric(sides)
        blocks = Blocks(sides, metric, calls, request.seed)
        wanted = NUM_BLOCKS_SHORT if max(side.typical_s for side in sides) < SHORT_STEP_S else NUM_BLOCKS
        started = time.monotonic()
        while len(blocks.rows) < wanted:
            blocks.run()
            if time.monotonic() - started > request.limit_s:
                break
        return ProcessBlocks(
            baseline=sides[0].name,
            candidate=sides[1].name,
            metric=metric,
            calls=calls,
            log_ratios=blocks.log_ratios(1).tolist(),
            baseline_s=blocks.median_s(0),
            candidate_s=blocks.median_s(1),
            slot_effect=blocks.slot_effect(),
            blocks_s=time.monotonic() - started,
            warm=warm,
        )


def decide_processes(estimates: Floats, rule: DecisionRule) -> Decision:
    """Look at the estimates of all processes so far: Student's interval of their mean, at the error probability of one look.

    >>> decide_processes(np.array([0.10, 0.11, 0.09, 0.10, 0.10]), DecisionRule(looks=(5,))).outcome
    'slower'
    """
    n = len(estimates)
    mean = float(np.mean(estimates))
    if n < 2:
        return Decision(None, mean, -math.inf, math.inf, n)
    half = _half_width(estimates, n, rule.alpha_per_look)
    return Decision(outcome_of(mean, mean - half, mean + half, rule), mean, mean - half, mean + half, n)


def processes_needed(estimates: Floats, rule: DecisionRule) -> int:
    """Processes after which the interval would be as narrow as the nearest limit of the rule is far; at most 1,000."""
    effect, margin = math.log1p(rule.smallest_effect), math.log1p(rule.margin)
    off = abs(float(np.mean(estimates)))
    distance = max(margin - off, off if off > effect else 0.0, effect / 2)
    counts = range(len(estimates) + 1, 1000)
    return next((n for n in counts if _half_width(estimates, n, rule.alpha_per_look) <= distance), 1000)


def _half_width(estimates: Floats, n: int, alpha: float) -> float:
    return float(student_quantile(1 - alpha / 2, n - 1) * np.std(estimates, ddof=1) / math.sqrt(n))


def _p_value(estimates: Floats) -> float | None:
    """Two-sided, of Student's test against no change; null for fewer than two processes."""
    if len(estimates) < 2:
        return None
    mean, error = float(np.mean(estimates)), float(np.std(estimates, ddof=1)) / math.sqrt(len(estimates))
    return student_tail(mean / error, len(estimates) - 1) if error else float(mean == 0)


@dataclass
class _Replication:
    """One comparison under way."""

    baseline: TargetSpec
    candidate: TargetSpec
    rule: DecisionRule
    budget_s: Seconds
    seed: int
    done: list[ProcessBlocks] = field(default_factory=list)
    decision: Decision | None = None
    interrupted: bool = False

    def go(self, progress: Progress) -> None:
        """Run processes until a look decides, all have run, or the budget is spent.

        Raises:
            KeyboardInterrupt: before the first process has ended, so that there is nothing to keep.
        """
        self._started_s = time.monotonic()
        try:
            self._run(progress)
        except KeyboardInterrupt:
            if not self.done:
                raise
            self.interrupted = True
        self.decision = decide_processes(self._estimates, self.rule)

    def _run(self, progress: Progress) -> None:
        coin = random.Random(self.seed)  # noqa: S311 - a coin for the order, not a secret
        for look in self.rule.looks:
            while len(self.done) < look:
                if self._would_overrun():
                    return
                progress(len(self.done) / self.rule.looks[-1], f"process {len(self.done) + 1}")
                blocks = self._process(coin)
                if self.done and len(blocks.log_ratios) < FEWEST_BLOCKS:
                    return  # cut short by the budget
                self.done.append(blocks)
            if decide_processes(self._estimates, self.rule).outcome:
                return

    def _process(self, coin: random.Random) -> ProcessBlocks:
        first = self.done[0] if self.done else None
        request = ProcessRequest(
            baseline=self.baseline,
            candidate=self.candidate,
            candidate_first=coin.random() < 0.5,
            seed=coin.getrandbits(31),
            metric=first.metric if first else None,
            calls=first.calls if first else 1,
            limit_s=max(self.budget_s - self._elapsed_s, 0.0),
        )
        return run_fresh(run_process, request)

    @property
    def _elapsed_s(self) -> Seconds:
        return time.monotonic() - self._started_s

    @property
    def _estimates(self) -> Floats:
        return np.array([blocks.estimate for blocks in self.done])

    def _would_overrun(self) -> bool:
        """Whether the next process would end after the budget; the first one is always run."""
        return bool(self.done) and self._elapsed_s * (1 + 1 / len(self.done)) > self.budget_s

    def verdict(self) -> Verdict:
        """The verdict on the processes that were run."""
        assert self.decision is not None
        decision, done, elapsed_s = self.decision, self.done, self._elapsed_s
        num_more = processes_needed(self._estimates, self.rule) - len(done) if len(done) > 1 else None
        bounded = math.isfinite(decision.low)
        return Verdict(
            outcome=decision.outcome or "undecided",
            ratio=math.exp(decision.estimate),
            ci_low=math.exp(decision.low) if bounded else None,
            ci_high=math.exp(decision.high) if bounded else None,
            confidence=self.rule.confidence,
            margin=self.rule.margin,
            smallest_effect=self.rule.smallest_effect,
            num_blocks=sum(len(blocks.log_ratios) for blocks in done),
            num_processes=len(done),
            elapsed_s=elapsed_s,
            blocks_s=sum(blocks.blocks_s for blocks in done),
            baseline=done[0].baseline,
            candidate=done[0].candidate,
            metric=done[0].metric,
            calls_per_batch=done[0].calls,
            baseline_s=float(np.median([blocks.baseline_s for blocks in done])),
            candidate_s=float(np.median([blocks.candidate_s for blocks in done])),
            log_ratios=self._estimates.tolist(),
            slot_effect=float(np.median([blocks.slot_effect for blocks in done])),
            needed_s=None if decision.outcome or num_more is None else num_more * elapsed_s / len(done),
            reason=self._reason(num_more),
            p_value=_p_value(self._estimates),
            seed=self.seed,
            interrupted=self.interrupted,
            caveats=self._caveats(),
        )

    def _reason(self, num_more: int | None) -> str | None:
        ran = f"{len(self.done)} process{'es' if len(self.done) > 1 else ''}"
        if self.decision is None or self.decision.outcome:
            return None
        if self.interrupted:
            return f"interrupted after {ran}"
        if num_more is None:
            need_s = math.ceil(self._elapsed_s * self.rule.looks[0])
            return (
                f"the budget was enough for {ran} only; --budget {need_s}s is enough for {self.rule.looks[0]}"
            )
        if len(self.done) == self.rule.looks[-1]:
            resolve = f"would resolve {format_percent(self.rule.margin, 2)}"
            return f"{ran} disagree too much; about --processes {len(self.done) + num_more} {resolve}"
        return None

    def _caveats(self) -> list[Caveat]:
        caveats: list[Caveat] = []
        num_cold = sum(not blocks.warm for blocks in self.done)
        if num_cold:
            message = f"a side was still warming up when the blocks began, in {num_cold} of {len(self.done)} processes"
            hint = f"the warm-up ends after {format_seconds(WARMUP_S)}; make the factory warm the program up"
            caveats.append(caveat(CaveatCode.NOT_STEADY, message, hint))
        return caveats
