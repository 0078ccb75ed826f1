"""Where the warm-up ends and the steady state begins; and whether it was steady.

The low quartile of windows that double in length is compared: as long as it falls, by more than the tolerance and more
than noise explains, the program is still warming up. The low quartile ignores what other programs do to the slow half of
the samples.
"""

from __future__ import annotations

import math

import numpy as np

from pyrometer.bench.autocorrelation import Floats

FIRST_WINDOW = 5
TOLERANCE = 0.02
FEW_TOLERANCE = 0.05
DRIFT_TOLERANCE = 0.10
NUM_SEGMENTS = 9
MAX_PAIRED = 400


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
        first, second = times[start : start + length], times[start + length : start + 3 * length]
        if not _falls(first, second):
            return start + _slow_head(times[start : start + 3 * length])
        start, length = start + length, length * 2
    return None


def _falls(first: Floats, second: Floats) -> bool:
    """Whether the low quartile falls by more than the tolerance, and by more than noise explains.

    The second condition is a one-sided Mann-Whitney test at 5 % by its normal approximation; on a busy machine low
    quartiles of a few steps differ by more than the tolerance every other time.
    """
    if np.quantile(second, 0.25) > np.quantile(first, 0.25) * (1 - TOLERANCE):
        return False
    first, second = first[:MAX_PAIRED], second[:MAX_PAIRED]
    n, m = len(first), len(second)
    superior = float((first[:, None] > second[None, :]).mean())
    return superior > 0.5 + 1.645 * math.sqrt((n + m + 1) / (12 * n * m))


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
