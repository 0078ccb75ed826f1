"""Requests that stopped coming."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.errors import InputError
from pyrometer.monitor.detecting.detector import Floats, Reading, registered
from pyrometer.quantity import Seconds


@registered("absence")
class Absence:
    """Silence that is longer than the gaps at the usual rate explain.

    Args:
        least_s: a silence shorter than this is never an alarm.
        gaps: times the usual gap; at independent arrivals a silence of 20 gaps comes once in 10⁹ of them.
        warm_up: values before a silence is judged.
    """

    def __init__(self, least_s: Seconds = 10.0, gaps: float = 20.0, warm_up: int = 50) -> None:
        if least_s <= 0 or gaps <= 1:
            raise InputError(
                f"absence: got least_s={least_s:g}, gaps={gaps:g}; legal are above 0 and above 1"
            )
        self._least_s, self._gaps, self._warm_up = least_s, gaps, warm_up
        self._seen, self._gap_s = 0, 0.0
        self._last_s: Seconds | None = None

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per call, with values or without."""
        silent_s = 0.0 if self._last_s is None else max(at_s - self._last_s, 0.0)
        if len(values):
            if self._last_s is not None and self._seen:
                gap_s = silent_s / len(values)
                # A gap that was an alarm is not what is usual.
                if self._seen < self._warm_up or silent_s < self._allowed_s():
                    self._gap_s += (gap_s - self._gap_s) * max(1 / self._seen, 0.02)
            self._seen, self._last_s, silent_s = self._seen + len(values), at_s, 0.0
        if self._seen >= self._warm_up:
            allowed_s = self._allowed_s()
            evidence = f"nothing for {silent_s:.3g} s, usual is one every {self._gap_s:.3g} s"
            yield Reading(
                at_s=at_s,
                after=len(values),
                score=silent_s / allowed_s,
                value=silent_s,
                expected=self._gap_s,
                evidence=evidence,
            )

    def _allowed_s(self) -> Seconds:
        return max(self._least_s, self._gaps * self._gap_s)
