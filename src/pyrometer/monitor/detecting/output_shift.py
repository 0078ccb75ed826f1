"""Outputs that are distributed otherwise than those of a reference: PSI, Kolmogorov–Smirnov and Wasserstein.

Each is compared with what chance gives for so few values as well as with a size that matters: a window of 200 values has
a PSI of 0.05 for no reason at all, and in a million values any difference is significant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats

from pyrometer.errors import InputError
from pyrometer.monitor.detecting.detector import Blocks, Floats, Reading, registered
from pyrometer.quantity import Seconds

Distance: TypeAlias = Literal["psi", "ks", "wasserstein"]
MATTERS = {"psi": 0.2, "ks": 0.1, "wasserstein": 0.25}
"""From here on a shift is worth an alarm; Wasserstein in standard deviations of the reference."""

BINS = 10
CHANCE = 1e-5  # per window


@registered("output-shift")
class OutputShift:
    """Distance of each window of outputs from a reference.

    Args:
        reference: outputs that were right; without any, the first `learn` values.
        distance: psi, ks or wasserstein.
        window: values of one window.
        learn: values of a reference that is learned.
        matters: distance from which an alarm is due; by default as `MATTERS` has it.
    """

    def __init__(
        self,
        reference: Floats | None = None,
        distance: Distance = "psi",
        window: int = 500,
        learn: int = 5000,
        matters: float | None = None,
    ) -> None:
        if distance not in MATTERS:
            raise InputError(f"distance: got {distance!r}; legal are {', '.join(MATTERS)}")
        self._blocks = Blocks(window)
        self._distance = distance
        self._matters = MATTERS[distance] if matters is None else matters
        self._learn, self._first = learn, np.empty(0)
        self._reference = None if reference is None else np.sort(np.asarray(reference, np.float64))

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per window, once there is a reference."""
        for after, window in self._blocks.cut(values):
            if self._reference is None:
                self._first = np.concatenate([self._first, window])
                if len(self._first) >= self._learn:
                    self._reference, self._first = np.sort(self._first), np.empty(0)
                continue
            far, chance = distance_of(self._distance, self._reference, window)
            evidence = f"{self._distance} of {far:.3g} from the reference, {max(self._matters, chance):.3g} is tolerated"
            yield Reading(
                at_s=at_s,
                after=after,
                score=far / max(self._matters, chance),
                value=float(window.mean()),
                expected=float(self._reference.mean()),
                evidence=evidence,
            )


def distance_of(distance: Distance, reference: Floats, window: Floats) -> tuple[float, float]:
    """How far a window is from a sorted reference, and how far chance would put it once in 100,000 windows."""
    together = len(reference) * len(window) / (len(reference) + len(window))
    if distance == "ks":
        return float(stats.ks_2samp(reference, window, method="asymp").statistic), math.sqrt(
            math.log(2 / CHANCE) / 2 / together
        )
    if distance == "wasserstein":
        spread = max(float(reference.std()), 1e-300)
        chance = float(stats.norm.isf(CHANCE / 2)) / math.sqrt(together)
        return float(stats.wasserstein_distance(reference, window)) / spread, chance
    return _psi(reference, window), float(stats.chi2.isf(CHANCE, BINS - 1)) / together


def _psi(reference: Floats, window: Floats) -> float:
    """Population stability index over bins of equal share; half a value is added to each, so that none is empty."""
    edges = np.unique(np.quantile(reference, np.linspace(0, 1, BINS + 1)[1:-1]))
    shares = []
    for sample in (reference, window):
        counts = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=len(edges) + 1) + 0.5
        shares.append(counts / counts.sum())
    return float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())
