"""Where the warm-up ends and the steady state begins; and whether it was steady.

The low quartile of windows that double in length is compared: as long as it falls by more than the tolerance the
program is still warming up. The low quartile ignores what other programs do to the slow half of the samples.
"""

from __future__ import annotations

import numpy as np

from pyrometer.bench.autocorrelation import Floats

FIRST_WINDOW = 5
TOLERANCE = 0.02
FEW_TOLERANCE = 0.05
DRIFT_TOLERANCE = 0.10
NUM_SEGMENTS = 9


def steady_start(times: Floats) -> int | None:
    """Index of the first steady step, or `None` while it is still warming up.

    Args:
        times: step times after the first call, in order.

    >>> steady_start(np.array([9.0, 5.0, 3.0, 2.0, 1.5] + [1.0] * 40))
    5
    >>> steady_start(np.array([2.0, 1.0, 1.0])) is None
    True
    """
    if len(times) < 3 * FIRST_WINDOW:
        return 0 if _flat(times) else None
    start, length = 0, FIRST_WINDOW
    while start + 3 * length <= len(times):
        first = float(np.quantile(times[start : start + length], 0.25))
        second = float(np.quantile(times[start + length : start + 3 * length], 0.25))
        if second > first * (1 - TOLERANCE):
            return start + _slow_head(times[start : start + 3 * length])
        start, length = start + length, length * 2
    return None


def _slow_head(times: Floats) -> int:
    """Leading steps above the upper quartile: a warm-up shorter than the window, which its low quartile does not see."""
    return int(np.argmax(times <= np.quantile(times, 0.75)))


def _flat(times: Floats) -> bool:
    """Whether so few (slow) steps already look steady: at least four, the second half not faster than the first."""
    half = len(times) // 2
    return len(times) >= 4 and float(times[half:].min()) > float(times[:half].min()) * (1 - FEW_TOLERANCE)


def drift(times: Floats) -> float:
    """Relative change of the low quartile from the first to the last ninth, when the way there was a trend; else 0.

    One series alone cannot tell the program's drift from the machine's, so only a strong and nearly monotone
    change counts.

    >>> round(drift(np.linspace(1.0, 2.0, 900)), 1)
    0.9
    >>> drift(np.ones(900))
    0.0
    """
    if len(times) < 4 * NUM_SEGMENTS:
        return 0.0
    lows = np.array([np.quantile(part, 0.25) for part in np.array_split(times, NUM_SEGMENTS)])
    change = float(lows[-1] / lows[0] - 1)
    pairs = np.sign(lows[None, :] - lows[:, None])[np.triu_indices(NUM_SEGMENTS, 1)]
    kendall = float(pairs.mean())
    return change if abs(change) > DRIFT_TOLERANCE and abs(kendall) >= 0.75 else 0.0
