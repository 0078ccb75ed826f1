"""ADWIN of River, a window that shrinks where its parts differ; an extra."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pyrometer.errors import InputError
from pyrometer.monitor.detecting.detector import Blocks, Floats, Reading, registered
from pyrometer.quantity import Seconds


@registered("adwin")
class Adwin:
    """Changes of the mean, judged by an adaptive window on the log scale.

    Args:
        delta: chance of a false alarm at each of its comparisons.
        logarithmic: whether ratios matter; for values above 0.

    Raises:
        InputError: River is not installed.
    """

    def __init__(self, delta: float = 0.0005, logarithmic: bool = True) -> None:
        try:
            from river.drift import ADWIN
        except ImportError as error:
            raise InputError(
                "detector 'adwin' needs River, which is not installed; pip install 'pyrometer[drift]', "
                "or choose cusum"
            ) from error
        self._window: Any = ADWIN(delta=delta)  # type: ignore[no-untyped-call]  # River has no types
        self._logarithmic = logarithmic

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per call, and one at each change."""
        after, before = 0, self._window.estimation
        for after, block in Blocks(1).cut(values):
            value = float(block[0])
            self._window.update(math.log(max(value, 1e-12)) if self._logarithmic else value)
            if self._window.drift_detected:
                yield self._reading(at_s, after, 1.0, before)
        if after:
            yield self._reading(at_s, after, 0.0, before)

    def _reading(self, at_s: Seconds, after: int, score: float, before: float) -> Reading:
        mean, expected = self._window.estimation, before
        if self._logarithmic:
            mean, expected = math.exp(mean), math.exp(expected)
        evidence = f"mean now {mean:.4g}, before {expected:.4g}"
        return Reading(at_s=at_s, after=after, score=score, value=mean, expected=expected, evidence=evidence)
