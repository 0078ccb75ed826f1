"""Leak or legitimate growth, decided from births and deaths of storages alone; nothing is fitted.

Storages are grouped by where they were made, and by the step in which they were: a *cohort*. After some more steps, what
is left of the cohorts tells growth from use. Parameters, optimizer state and caches that fill early survive too, but only
of the first steps; buffers that roll over leave nothing of old cohorts; lists that an epoch clears leave only the last one.

Two rules find growth. **Kept**: enough cohorts have survivors (the lower end of Wilson's interval for their share is above
2 %), old cohorts no less than new ones, and what is alive grows accordingly. **Queued**: nothing old survives, but what is
alive at the lowest point of each sixth of the steps rises from sixth to sixth, and goes on to: a queue that is filled faster
than it is emptied, or one tensor that is replaced by an ever longer one.

Source of the interval: E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pyrometer.bench.distributions import binomial_cdf, student_quantile
from pyrometer.bench.quantiles import normal_quantile
from pyrometer.quantity import Bytes

MIN_STEPS = 24
"""Fewer steps decide nothing."""

ENOUGH_IN_WINDOWS = 30
"""Cohorts that a judgement needs where only windows were watched: more than one window of the usual length."""

MIN_SHARE = 0.02
"""A site leaks when at least so many of its cohorts survive, one in fifty."""

MIN_HITS = 3
"""Two things that come late and stay are no leak yet."""

SUSTAINED = 0.5
"""Growth goes on when the second half has at least so much of what the first half had."""

STILL = 0.25
"""Growth has ended when the last third of the steps adds less than so much of what was added before."""

FEWEST_EXPECTED = 5
"""Where fewer cohorts were to stay in the last third, chance may leave it without any."""

FALSE_ALARM_RATE = 0.02
"""Bound for each of ten kinds of programs whose buffers are full, whose periods are over and whose caches have all but filled
within two thirds of the steps. Tests simulate them: rolling windows, epochs, random eviction, caches over random shapes,
queues that are drained, random lifetimes, the best so far, state that is built early or late, random lengths."""

NUM_BLOCKS = 6
_CONFIDENCE = 0.95


class Birth(NamedTuple):
    """A storage that outlived the step in which it was made."""

    step: int
    site: Hashable
    nbytes: Bytes
    died: int | None
    """The first step after which it is gone; `None` while it lives."""


@dataclass(frozen=True)
class Span:
    """Which steps were watched, and which of them are judged.

    Attributes:
        steps: those whose births were recorded, in order.
        end: steps that have run in all.
        warm: steps before this one may build what stays.
        lag: what is younger than so many steps may still go.
    """

    steps: Sequence[int]
    end: int
    warm: int
    lag: int

    @classmethod
    def of(cls, steps: int) -> Span:
        """All of so many steps are recorded; the first eighth is warm-up, the last sixth too young.

        >>> span = Span.of(60)
        >>> span.warm, span.end - span.lag, len(span.judged)
        (7, 50, 43)
        """
        return cls(range(steps), steps, warm=max(3, steps // 8), lag=max(3, steps // 6))

    @property
    def judged(self) -> list[int]:
        """Steps whose cohorts are old enough, and not of the warm-up."""
        return [step for step in self.steps if self.warm <= step < self.end - self.lag]

    @property
    def whole(self) -> bool:
        """Whether every step was recorded, so that what is alive is known at each."""
        return len(self.steps) == self.end


@dataclass(frozen=True)
class Growth:
    """A site of which more and more stays.

    Attributes:
        site: where it is made.
        rule: `kept` or `queued`.
        steps: the steps whose cohorts survive.
        bytes_per_step: growth.
        low: lower end of the 95 % interval of `bytes_per_step`.
        high: its upper end.
        period: steps per surviving cohort.
        slowing: the second half keeps less than half of what the first did.
    """

    site: Hashable
    rule: str
    steps: tuple[int, ...]
    bytes_per_step: float
    low: float
    high: float
    period: float
    slowing: bool = False


def find_growth(births: Iterable[Birth], span: Span) -> list[Growth]:
    """The sites that grow, the fastest first.

    >>> births = [Birth(step, "losses.append", 4, None) for step in range(60)]
    >>> births += [Birth(step, "deque", 512, step + 8) for step in range(60)]
    >>> [(one.site, one.bytes_per_step) for one in find_growth(births, Span.of(60))]
    [('losses.append', 4.0)]
    """
    sites: dict[Hashable, list[Birth]] = defaultdict(list)
    for birth in births:
        sites[birth.site].append(birth)
    if len(span.judged) < enough(span):
        return []
    growths = [growth_of(group, span) for group in sites.values()]
    return sorted(
        (growth for growth in growths if growth is not None), key=lambda growth: -growth.bytes_per_step
    )


def enough(span: Span) -> int:
    """How many cohorts a judgement needs."""
    return len(Span.of(MIN_STEPS).judged) if span.whole else ENOUGH_IN_WINDOWS


def growth_of(births: Sequence[Birth], span: Span) -> Growth | None:
    """Growth of one site, or `None`."""
    kept: dict[int, Bytes] = defaultdict(int)
    for birth in births:
        if birth.died is None:
            kept[birth.step] += birth.nbytes
    live = live_bytes(births, span) if span.whole else None
    hits = [step for step in span.judged if kept.get(step)]
    if (
        _survives(hits, span)
        and not _has_ended(kept, span)
        and (live is None or _still_grows(live, kept, span))
    ):
        return _kept_growth(births[0].site, hits, kept, span)
    if (
        live is not None
        and not _has_ended(kept, span)
        and rises(live[span.warm :])
        and _remains(live, sum(kept.values()), span)
    ):
        return _queued_growth(births[0].site, sorted(kept), live, span)
    return None


def sporadic(births: Iterable[Birth], span: Span) -> int:
    """Survivors of the site that may yet turn out to grow: some in either half, too few to say; 0 when there is none.

    >>> births = [Birth(step, "snapshot", 64, None) for step in (15, 40)]
    >>> sporadic(births, Span.of(60)), sporadic(births[:1], Span.of(60))
    (2, 0)
    """
    sites: dict[Hashable, list[Birth]] = defaultdict(list)
    for birth in births:
        sites[birth.site].append(birth)
    return max((_doubtful(group, span) for group in sites.values()), default=0)


def _doubtful(births: Sequence[Birth], span: Span) -> int:
    kept: dict[int, Bytes] = defaultdict(int)
    for birth in births:
        if birth.died is None:
            kept[birth.step] += birth.nbytes
    judged = span.judged
    hits = [step for step in judged if kept.get(step)]
    middle = judged[len(judged) // 2]
    old = sum(step < middle for step in hits)
    few = 0 < old < len(hits) and not _survives(hits, span)
    if not few or _has_ended(kept, span):
        return 0
    if span.whole and not _still_grows(live_bytes(births, span), kept, span):
        return 0
    return len(hits)


def wilson_low(hits: int, trials: int) -> float:
    """Lower end of Wilson's interval for a share.

    >>> round(wilson_low(3, 41), 4), wilson_low(0, 41)
    (0.0252, 0.0)
    """
    if not hits or not trials:
        return 0.0
    z = normal_quantile((1 + _CONFIDENCE) / 2)
    share, spread = hits / trials, z * z / trials
    root = math.sqrt(share * (1 - share) * spread + spread * spread / 4)
    return max(0.0, (share + spread / 2 - root) / (1 + spread))


def needed_steps(hits: int, steps: int) -> int:
    """How many steps to watch so that cohorts that go on to survive at this rate are enough to decide.

    >>> needed_steps(2, 30)
    63
    """
    rate = hits / max(steps, 1)
    cohorts = next((n for n in range(MIN_STEPS, 5000) if wilson_low(int(rate * n), n) > MIN_SHARE), 5000)
    return max(MIN_STEPS, math.ceil(cohorts * 60 / 43))


def live_bytes(births: Sequence[Birth], span: Span) -> np.ndarray:
    """Bytes alive after each step."""
    change = np.zeros(span.end + 1, dtype=np.int64)
    for birth in births:
        change[birth.step] += birth.nbytes
        if birth.died is not None:
            change[min(birth.died, span.end)] -= birth.nbytes
    alive: np.ndarray = np.cumsum(change[:-1])
    return alive


def rises(series: Sequence[float] | np.ndarray) -> bool:
    """Whether the lowest values of six equal blocks rise from block to block, and go on to.

    >>> rises(range(24)), rises([step % 5 for step in range(24)]), rises([min(step, 12) for step in range(24)])
    (True, False, False)
    """
    if len(series) < NUM_BLOCKS:
        return False
    floors = [float(block.min()) for block in np.array_split(np.asarray(series), NUM_BLOCKS)]
    steps = np.diff(floors)
    half = len(steps) // 2
    return bool((steps > 0).all() and steps[-half:].sum() >= SUSTAINED * steps[:half].sum())


def _survives(hits: Sequence[int], span: Span) -> bool:
    judged = span.judged
    if len(hits) < MIN_HITS or wilson_low(len(hits), len(judged)) <= MIN_SHARE:
        return False
    middle = judged[len(judged) // 2]
    old = sum(step < middle for step in hits)
    return 0 < old < len(hits) and old >= SUSTAINED * (len(hits) - old)


def _still_grows(live: np.ndarray, kept: dict[int, Bytes], span: Span) -> bool:
    """Whether what is alive grows by what is kept: where as much dies as stays, a buffer is full."""
    block = max(1, span.lag // 2)
    middle = (span.warm + span.end) // 2
    before = int(live[middle - block : middle].min())
    after = int(live[span.end - block :].min())
    stayed = sum(size for step, size in kept.items() if middle <= step < span.end - block)
    return after - before >= SUSTAINED * stayed > 0 and not _is_level(live, kept, span)


def _is_level(live: np.ndarray, kept: dict[int, Bytes], span: Span) -> bool:
    """Whether the last third of the steps adds next to nothing, though at the rate of what is kept it would."""
    judged, block = span.judged, max(1, span.lag // 2)
    start = span.end - (span.end - span.warm) // 3
    sizes = [kept[step] for step in judged if kept.get(step)]
    if len(sizes) / len(judged) * (span.end - start) < FEWEST_EXPECTED:
        return False
    grown = int(live[span.end - block :].min()) - int(live[start - block : start].min())
    return grown < STILL * sum(sizes) / len(judged) * (span.end - start)


def _has_ended(kept: dict[int, Bytes], span: Span) -> bool:
    """Whether nothing of the latest steps survives, for longer than there ever was a pause, and than chance allows.

    Of young cohorts too: what has left nothing will not.
    """
    steps = [step for step in span.steps if step >= span.warm]
    hits = np.array([number for number, step in enumerate(steps) if kept.get(step)])
    if not len(hits):
        return True
    since = len(steps) - 1 - int(hits[-1])
    longest = int(np.diff(hits).max()) - 1 if len(hits) > 1 else 0
    rate = len(hits) / (int(hits[-1]) + 2)
    return since >= max(3, len(span.steps) // NUM_BLOCKS) and since > longest and (1 - rate) ** since < 0.02


def _remains(live: np.ndarray, alive_now: Bytes, span: Span) -> bool:
    """Whether most of the growth is still there now: garbage that was collected at the end is not."""
    grown = int(live[-1]) - int(live[span.warm])
    return alive_now - int(live[span.warm]) >= SUSTAINED * grown


def _kept_growth(site: Hashable, hits: list[int], kept: dict[int, Bytes], span: Span) -> Growth:
    judged = span.judged
    rate, low, high = _rate(hits, [kept[step] for step in hits], judged)
    return Growth(
        site=site,
        rule="kept",
        steps=tuple(hits),
        bytes_per_step=rate,
        low=low,
        high=high,
        period=len(judged) / len(hits),
        slowing=_slows(kept, span),
    )


def _slows(kept: dict[int, Bytes], span: Span) -> bool:
    """Whether the second half keeps less than the first, as caches do that meet most of their keys early.

    Less than half of the bytes of the judged steps; or, with the warm-up, so few cohorts that the same chance in both halves
    would show it once in fifty times.
    """
    judged, old_enough = span.judged, [step for step in span.steps if step < span.end - span.lag]
    early, late = (sum(kept.get(step, 0) for step in half) for half in _halves(judged))
    if late < SUSTAINED * early:
        return True
    before, after = (sum(step in kept for step in half) for half in _halves(old_enough))
    return binomial_cdf(after, before + after, 0.5) < 0.02


def _halves(steps: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    middle = len(steps) // 2
    return steps[:middle], steps[middle:]


def _rate(hits: list[int], sizes: list[Bytes], judged: list[int]) -> tuple[float, float, float]:
    """Bytes per step with a 95 % interval.

    From one survivor to the next there is a gap, so that bytes over gaps estimate the rate as a ratio of means, with the
    spread of what the ratio leaves over. What comes at even distances is thereby exact.
    """
    order = {step: number for number, step in enumerate(judged)}
    gaps = np.diff([order[step] for step in hits]).astype(float)
    if len(gaps) < 2:
        rate = sum(sizes) / len(judged)
        return rate, 0.0, 3 * rate
    values = np.asarray(sizes[1:], dtype=float)
    rate = float(values.sum() / gaps.sum())
    spread = float((values - rate * gaps).std(ddof=1) / gaps.mean()) / math.sqrt(len(gaps))
    margin = student_quantile((1 + _CONFIDENCE) / 2, len(gaps) - 1) * spread
    return rate, max(0.0, rate - margin), rate + margin


def _queued_growth(site: Hashable, alive: list[int], live: np.ndarray, span: Span) -> Growth:
    """The rate from lowest point to lowest point, with a 95 % interval from the blocks in between."""
    blocks = np.array_split(np.arange(span.warm, span.end), NUM_BLOCKS)
    lowest = np.array([block[live[block].argmin()] for block in blocks])
    slopes = np.diff(live[lowest]) / np.diff(lowest)
    rate = float(live[lowest[-1]] - live[lowest[0]]) / float(lowest[-1] - lowest[0])
    spread = float(slopes.std(ddof=1)) / math.sqrt(len(slopes))
    margin = student_quantile((1 + _CONFIDENCE) / 2, len(slopes) - 1) * spread
    return Growth(
        site=site,
        rule="queued",
        steps=tuple(alive),
        bytes_per_step=rate,
        low=max(0.0, rate - margin),
        high=rate + margin,
        period=1.0,
    )
