"""Where a repeating sequence closes: two optimizers that take turns make one step."""

from __future__ import annotations

import numpy as np

from pyrometer.workload.script.events import Integers

LONGEST_CYCLE = 64
TOLERANCE = 0.02


def cycle_length(ids: Integers) -> int:
    """The shortest period that explains a sequence about as well as the best one does.

    A period p explains an element that equals the one p places later. At least three repetitions are asked for.

    >>> cycle_length(np.array([7, 8] * 5)), cycle_length(np.array([7] * 5 + [8] * 5)), cycle_length(np.array([7]))
    (2, 1, 1)
    """
    longest = min(LONGEST_CYCLE, len(ids) // 3)
    explained = [float(np.mean(ids[period:] == ids[:-period])) for period in range(1, longest + 1)]
    if not explained:
        return 1
    return next(index for index, share in enumerate(explained, 1) if share >= max(explained) - TOLERANCE)


def closings(ids: Integers) -> Integers:
    """Positions at which a cycle closes; an unfinished last cycle closes nowhere.

    >>> closings(np.array([7, 7, 8] * 4 + [7])).tolist()
    [2, 5, 8, 11]
    """
    period = cycle_length(ids)
    if period == 1:
        return np.arange(len(ids), dtype=np.int64)
    closes = ids == ids[period - 1]
    # The next one must open a cycle again, in case the closing one occurs more than once in it.
    closes[:-1] &= ids[1:] == ids[0]
    return np.flatnonzero(closes)
