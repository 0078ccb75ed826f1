"""Numbers that went wrong: NaN and infinities, and gradients that explode or vanish."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from pyrometer.errors import InputError
from pyrometer.monitor.detecting.detector import Blocks, Floats, Reading, registered
from pyrometer.quantity import Seconds


@registered("non-finite")
class NonFinite:
    """One NaN or infinity is one too many; there is no warm-up."""

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per call with values."""
        if len(values):
            bad = int(np.count_nonzero(~np.isfinite(values)))
            evidence = f"{bad} of {len(values)} are NaN or infinite"
            yield Reading(
                at_s=at_s,
                after=len(values),
                score=float(bad > 0),
                value=float(bad),
                expected=0.0,
                evidence=evidence,
            )


@registered("norm-jump")
class NormJump:
    """A norm many times that of the last values, or a tiny share of what it was at first; of values that are not negative.

    Args:
        times: the median of the last values at which it explodes.
        share: of the median of the first values below which it has vanished.
        window: values that make the median.
        warm_up: values before anything is judged.
    """

    def __init__(self, times: float = 10.0, share: float = 1e-6, window: int = 50, warm_up: int = 10) -> None:
        if not (times > 1 > share > 0 and window >= warm_up >= 1):
            raise InputError(
                f"norm-jump: got times={times:g}, share={share:g}, window={window}, warm_up={warm_up}; "
                "legal are above 1, between 0 and 1, at least warm_up, 1 or more"
            )
        self._times, self._share, self._warm_up = times, share, warm_up
        self._recent: deque[float] = deque(maxlen=window)
        self._first: float | None = None

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per finite value after warm-up; what explodes is not learned."""
        for after, block in Blocks(1).cut(values):
            norm, score = float(block[0]), 0.0
            if len(self._recent) >= self._warm_up:
                usual = float(np.median(self._recent))
                self._first = usual if self._first is None else self._first
                up = norm / max(usual * self._times, 1e-300)
                down = self._first * self._share / max(norm, 1e-300)
                score = min(max(up, down), 1e6)
                evidence = f"{norm:.3g}, the last ones {usual:.3g}, the first ones {self._first:.3g}"
                yield Reading(
                    at_s=at_s, after=after, score=score, value=norm, expected=usual, evidence=evidence
                )
            if score < 1:
                self._recent.append(norm)
