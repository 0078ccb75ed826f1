"""Which lever is at fault: one lever of a recipe is switched off for a random share of the batches, and the two are compared.

Because chance decides per batch, both sides see the same load, and the interval may be looked at after every batch: it is a
confidence sequence for the difference of mean log-latencies (Waudby-Smith et al., 2021, as used by GrowthBook).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Annotated

from pyrometer.bench.comparison.always_valid import width
from pyrometer.errors import InputError
from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc

LEAST = 100
"""Batches without a lever before its interval means anything."""


class LeverEffect(Record, frozen=True, kw_only=True):
    """What switching one lever off does to latency."""

    lever: str
    num_off: int
    ratio: Annotated[
        Ratio | None, doc("latency without it over latency with all; null before 100 batches")
    ] = None
    low: float | None = None
    high: float | None = None

    @property
    def is_at_fault(self) -> bool:
        """Whether it is proved to make batches slower."""
        return self.high is not None and self.high < 1


class LeverProbes:
    """Decides per batch, and compares.

    Args:
        levers: names of those that can be switched off one by one.
        share: of batches, over all levers together.
        confidence: that all intervals hold, at all times.
        rng: of the decisions.
    """

    def __init__(
        self,
        levers: Sequence[str],
        share: float = 0.01,
        confidence: float = 0.99,
        rng: random.Random | None = None,
    ) -> None:
        if not levers or not 0 < share <= 0.5 or not 0.5 <= confidence < 1:
            raise InputError(
                f"probes: got {len(levers)} levers, share={share:g}, confidence={confidence:g}; "
                "legal are 1 or more, above 0 up to 0.5, 0.5 up to below 1"
            )
        self._levers, self._share = list(levers), share
        self._alpha = (1 - confidence) / len(levers)
        self._rng = rng or random.Random()  # noqa: S311 - no secret
        self._sums = {name: [0.0, 0.0, 0.0] for name in (*levers, "")}

    def choose(self) -> str | None:
        """The lever to switch off for the next batch; mostly none."""
        return self._rng.choice(self._levers) if self._rng.random() < self._share else None

    def record(self, off: str | None, latency_s: Seconds) -> None:
        """A batch took so long, with this lever switched off."""
        if latency_s > 0 and math.isfinite(latency_s):
            sums, level = self._sums[off or ""], math.log(latency_s)
            sums[0] += 1
            away = level - sums[1]
            sums[1] += away / sums[0]  # mean, and squared deviations from it (Welford)
            sums[2] += away * (level - sums[1])

    def effects(self) -> list[LeverEffect]:
        """Per lever, the most harmful first."""
        found = [self._effect(name) for name in self._levers]
        return sorted(found, key=lambda one: math.inf if one.ratio is None else one.ratio)

    def _effect(self, lever: str) -> LeverEffect:
        (off, off_mean, off_squares), (on, on_mean, on_squares) = self._sums[lever], self._sums[""]
        if off < LEAST or on < LEAST:
            return LeverEffect(lever=lever, num_off=int(off))
        error = math.sqrt(off_squares / (off - 1) / off + on_squares / (on - 1) / on)
        # In units of batches that are randomised between the two.
        reach = error * width(off + on, self._alpha)
        away = off_mean - on_mean
        return LeverEffect(
            lever=lever,
            num_off=int(off),
            ratio=math.exp(away),
            low=math.exp(away - reach),
            high=math.exp(away + reach),
        )
