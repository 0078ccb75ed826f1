"""The confirmation: the whole recipe against the baseline, in fresh processes, on fresh inputs.

What a search keeps was chosen because it looked good, so that its figures flatter (the winner's curse). What is reported is
taken anew: each pair of fresh processes gives one estimate, and the interval is that in which the ratio of the next pair is expected
(Student's prediction interval over the pairs, with what earlier confirmations say of their spread, and without what each estimate is
uncertain by itself: the next pair has a ratio of its own, but not the noise of these).
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from pyrometer.bench.comparison.decision import DecisionRule
from pyrometer.bench.comparison.pairing import merged, robust_sd
from pyrometer.bench.comparison.verdict import Outcome, Verdict
from pyrometer.bench.distributions import student_quantile
from pyrometer.errors import NotApplicableError
from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.tuning.levers.choice import Configuration, label_of
from pyrometer.tuning.search.budget import SHORTEST_PAIR_S, shortest_pair_s
from pyrometer.tuning.search.spread import LEAST_SPREAD, UNKNOWN, Spread
from pyrometer.tuning.trials.gate import Numerics
from pyrometer.tuning.trials.laboratory import Laboratory, OpenConfiguration

CONFIDENCE = 0.95
MORE = 2
"""Times as many pairs at most, while it is undecided and there is time: the next ratio is bounded, so that a look early claims little."""

LEAST_PAIRS = 2
"""Without a second one there is no interval."""

FRESH_SEED = 7919


@dataclass
class Confirmation:
    """What the confirmation found; nothing where no lever was kept."""

    configuration: Configuration
    verdict: Verdict | None = None
    numerics: Numerics | None = None
    peak_bytes: Bytes | None = None
    note: str | None = None

    @property
    def is_faster(self) -> bool:
        """Whether it was proved to be."""
        return bool(self.configuration) and self.verdict is not None and self.verdict.outcome == "faster"


@dataclass
class Pairs:
    """How many pairs of processes, and how long each is compared.

    Attributes:
        most: pairs, that decide as a rule.
        pair_s: of comparison, each.
        end_s: when all of it should be over, by `now`; pairs become shorter, then fewer, two at least, to meet it.
        now: a clock.
        spread: what is known of pairs on this machine.
    """

    most: int
    pair_s: Seconds
    end_s: Seconds = math.inf
    now: Callable[[], Seconds] = time.monotonic
    spread: Spread = UNKNOWN

    def fits(self, verdicts: Sequence[Verdict], opening_s: Seconds, step_s: Seconds) -> bool:
        """Whether another pair is begun after these."""
        number, now = len(verdicts), self.now()
        if number < LEAST_PAIRS:
            return number < self.most
        undecided = _of_pairs(verdicts, self.spread).outcome == "undecided"
        if now + opening_s + shortest_pair_s(step_s) <= self.end_s:
            return number < (MORE * self.most if undecided and self.end_s < math.inf else self.most)
        # One more may end late, where without it nothing would be known.
        return number == LEAST_PAIRS and now <= self.end_s and undecided

    def compared_s(self, number: int, opening_s: Seconds, step_s: Seconds) -> Seconds:
        """How long a pair that has just been opened is compared, so that those after it have as long."""
        left = max(self.most - number, 1)
        each_s = (self.end_s - self.now() - (left - 1) * opening_s) / left
        return min(max(each_s, shortest_pair_s(step_s)), max(self.pair_s, SHORTEST_PAIR_S))


def confirm(
    laboratory: Laboratory, recipe: Configuration, pairs: Pairs, progress: Callable[[float, str], None]
) -> tuple[Verdict, Numerics, Bytes]:
    """Compare a recipe with the baseline anew; returns the verdict, the numerics, and the peak of memory.

    Raises:
        PyrometerError: a configuration that ran before no longer does.
    """
    verdicts: list[Verdict] = []
    opening_s = 0.0
    while pairs.fits(verdicts, opening_s, laboratory.step_s):
        number, seed = len(verdicts), FRESH_SEED + len(verdicts)
        progress(number / pairs.most, f"confirming in fresh processes: pair {number + 1} of {pairs.most}")
        begin = pairs.now()
        with _opened(laboratory, recipe, seed) as (baseline, changed):
            opening_s = pairs.now() - begin
            if changed.opened.not_applied is not None:
                raise NotApplicableError(changed.opened.not_applied)
            if number == 0:  # before steps are timed, which train the model that the check starts from
                numerics = laboratory.check(changed)
            compared_s = pairs.compared_s(number, opening_s, laboratory.step_s)
            rule = DecisionRule(confidence=0.99, looks=(laboratory.num_blocks,))
            verdicts.append(laboratory.compare(baseline, changed, compared_s, rule, seed=seed))
            if number == 0:
                peak = laboratory.peak_bytes(changed)
    verdict = _of_pairs(verdicts, pairs.spread)
    return replace(verdict, baseline="baseline", candidate=label_of(recipe)), numerics, peak


@contextlib.contextmanager
def _opened(
    laboratory: Laboratory, recipe: Configuration, seed: int
) -> Iterator[tuple[OpenConfiguration, OpenConfiguration]]:
    """The baseline and the recipe, each in a fresh process; both start at once, which takes half as long."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        started = [
            threads.submit(laboratory.open, configuration, fresh_seed=seed) for configuration in ((), recipe)
        ]
        for opening in started:
            stack.callback(_close_opened, opening)
        try:
            wait(started)
        except KeyboardInterrupt:
            laboratory.abandon()
            raise
        yield started[0].result(), started[1].result()


def _close_opened(opening: Future[OpenConfiguration]) -> None:
    if opening.exception() is None:
        opening.result().close()


def _of_pairs(verdicts: Sequence[Verdict], spread: Spread) -> Verdict:
    noise = float(np.mean([_noise(verdict.log_ratios) for verdict in verdicts]))
    estimate, low, high = expected_next([verdict.ratio for verdict in verdicts], noise, spread)
    return replace(
        verdicts[-1],
        outcome=_outcome(estimate, low, high, verdicts[-1].margin),
        ratio=estimate,
        ci_low=low,
        ci_high=high,
        confidence=CONFIDENCE,
        num_blocks=sum(verdict.num_blocks for verdict in verdicts),
        num_processes=len(verdicts),
        elapsed_s=sum(verdict.elapsed_s for verdict in verdicts),
        blocks_s=sum(verdict.blocks_s for verdict in verdicts),
        baseline_s=_median([verdict.baseline_s for verdict in verdicts]),
        candidate_s=_median([verdict.candidate_s for verdict in verdicts]),
        log_ratios=[math.log(verdict.ratio) for verdict in verdicts],
        reason=None,
        p_value=None,
        tails=[],
        caveats=[],
    )


def _noise(blocks: Sequence[float]) -> float:
    """The variance of the centre of some blocks."""
    apart = merged(np.asarray(blocks, dtype=np.float64))
    return robust_sd(apart) ** 2 / len(apart) if len(apart) else 0.0


def expected_next(
    ratios: Sequence[Ratio], noise: float = 0.0, spread: Spread = UNKNOWN
) -> tuple[Ratio, Ratio, Ratio]:
    """The geometric mean, and the interval in which the ratio of another pair of processes is expected.

    >>> mean, low, high = expected_next([0.50, 0.51, 0.49, 0.50])
    >>> round(mean, 2), round(low, 2), round(high, 2)
    (0.5, 0.47, 0.53)
    """
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    if len(logs) < 2:
        return math.exp(logs[0]), 0.0, math.inf
    num, least = len(logs), LEAST_SPREAD**2
    seen, degrees = spread.moderated(logs.tolist())
    # Pairs vary by what processes vary, and by noise; that the mean is uncertain, and that processes vary at all, stays.
    variance = max(seen * (1 + 1 / num) - noise, max(seen, noise) / num + least)
    reach = student_quantile(0.5 + CONFIDENCE / 2, degrees) * math.sqrt(variance)
    mean = float(logs.mean())
    return math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)


def _outcome(estimate: Ratio, low: Ratio, high: Ratio, margin: float) -> Outcome:
    if high < 1 and estimate < 1:
        return "faster"
    if low > 1 and estimate > 1:
        return "slower"
    return "same" if low > 1 / (1 + margin) and high < 1 + margin else "undecided"


def _median(values: Sequence[Seconds | None]) -> Seconds | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None
