"""Proof in pairs: the chosen setting and the loader as it was, in turn and in random order."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence

import numpy as np

from pyrometer.bench.comparison.decision import Decision, DecisionRule, decide, outcome_of
from pyrometer.bench.comparison.interleaving import seed_all
from pyrometer.loading.settings import LoaderSettings
from pyrometer.quantity import Seconds
from pyrometer.tuning.loader.record import LoaderGain
from pyrometer.tuning.loader.search import size
from pyrometer.tuning.loader.turn import Turn

CONFIDENCE = 0.95
FIRST_LOOK = 6
"""The fewest blocks whose signs alone can decide it: if nothing differs, all are alike with a probability of one in 32."""

LATER_LOOKS = (10, 16)
LAST_LOOK = LATER_LOOKS[-1]
SIGNS_ALPHA = 2.0 ** (1 - FIRST_LOOK)

RunTurn = Callable[[LoaderSettings], Turn]


def prove(
    run: RunTurn,
    before: LoaderSettings,
    candidate: LoaderSettings,
    *,
    margin: float,
    deadline_s: Seconds,
    now_s: Callable[[], Seconds] = time.perf_counter,
) -> LoaderGain | None:
    """Compare two settings until it is decided, or the time is over.

    A block is one turn of each, in the order of a coin; its number is the logarithm of the ratio of their times per batch.

    Returns:
        `None` when there was no time for a single block.
    """
    coin = random.Random(0)  # noqa: S311 - a coin for the order, not a secret
    blocks: list[float] = []
    began_s = now_s()
    while len(blocks) < LAST_LOOK:
        pace_s = (now_s() - began_s) / max(len(blocks), 1)
        if now_s() + pace_s > deadline_s:
            break
        blocks.append(_block(run, before, candidate, coin))
        if len(blocks) >= FIRST_LOOK and _settles(look(blocks, margin), margin, before, candidate):
            break
    return _gain(blocks, margin, candidate, (now_s() - began_s) / len(blocks)) if blocks else None


def look(blocks: Sequence[float], margin: float) -> Decision:
    """What the blocks say at the last look that they allow; the error of 5 % is shared among the looks.

    Six are judged by their signs: the interval of their median reaches from the smallest to the largest. Ten and sixteen are judged
    by the Hodges-Lehmann estimate with the signed-rank interval; see `pyrometer.bench.comparison.pairing`.

    >>> look([-1.2, -1.4, -1.3, -1.1, -1.5, -1.3], 0.05).outcome
    'faster'
    """
    rule = DecisionRule(confidence=CONFIDENCE + SIGNS_ALPHA, margin=margin, looks=LATER_LOOKS)
    reached = [count for count in (FIRST_LOOK, *LATER_LOOKS) if count <= len(blocks)]
    if not reached:
        return Decision(None, float(np.median(blocks)), -math.inf, math.inf, len(blocks))
    seen = np.array(blocks[: reached[-1]])
    if len(seen) > FIRST_LOOK:
        return decide(seen, rule)
    estimate, low, high = float(np.median(seen)), float(seen.min()), float(seen.max())
    return Decision(outcome_of(estimate, low, high, rule), estimate, low, high, FIRST_LOOK)


def not_slower(gain: LoaderGain, margin: float) -> bool:
    """Whether the candidate is proved to take no more than `margin` longer: enough for one that takes less of the machine."""
    return gain.ci_high is not None and gain.ci_high < 1 + margin


def _settles(decision: Decision, margin: float, before: LoaderSettings, candidate: LoaderSettings) -> bool:
    is_enough = size(candidate) < size(before) and decision.high < math.log1p(margin)
    return decision.outcome is not None or is_enough


def _block(run: RunTurn, before: LoaderSettings, candidate: LoaderSettings, coin: random.Random) -> float:
    seed = coin.getrandbits(31)
    times: dict[bool, float] = {}
    for is_candidate in coin.sample([False, True], 2):
        # The same draws for both sides, so that they load alike.
        seed_all(seed)
        times[is_candidate] = run(candidate if is_candidate else before).batch_s
    return math.log(times[True] / times[False])


def _gain(blocks: list[float], margin: float, candidate: LoaderSettings, pace_s: Seconds) -> LoaderGain:
    decision = look(blocks, margin)
    low, high = (math.exp(end) if math.isfinite(end) else None for end in (decision.low, decision.high))
    next_look = min((count for count in (FIRST_LOOK, *LATER_LOOKS) if count > len(blocks)), default=LAST_LOOK)
    return LoaderGain(
        outcome=decision.outcome or "undecided",
        ratio=math.exp(decision.estimate),
        ci_low=low,
        ci_high=high,
        confidence=CONFIDENCE,
        num_blocks=len(blocks),
        candidate=candidate,
        needed_s=None if decision.outcome else max(next_look - len(blocks), 1) * pace_s,
    )
