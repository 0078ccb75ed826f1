"""When to look: windows in a long run, as far apart as their cost demands."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds

WARM_STEPS = 3
"""Steps before the first window; they build what stays."""

NUM_TIMES = 101


class Schedule:
    """Counts steps, times them, and says when a window opens and closes.

    What a step in a window takes longer than the median step outside, and what happens between steps, is the cost. Unless
    the distance is given, a window opens when the cost of one more keeps all of it below the share that is allowed.

    Attributes:
        window: steps per window.
        steps: that are over.
        always: every step is in a window.
        is_open: a window is open.
        warm: steps that count as warm-up.
    """

    def __init__(
        self, every: int | None, window: int, max_overhead: float, clock: Callable[[], Seconds]
    ) -> None:
        if window < 1:
            raise InputError(f"window: got {window} steps; at least 1, and 20 by default")
        if every is not None and every < window:
            raise InputError(f"every: got {every} steps for windows of {window}; it must be at least as many")
        if not max_overhead > 0:
            raise InputError(f"max_overhead: got {max_overhead}; a share of the time such as 0.03")
        self.window = window
        self.steps = 0
        self.is_open = False
        self.always = every == window
        self.warm = WARM_STEPS
        self._every = every
        self._max_overhead = max_overhead
        self._clock = clock
        self._plain: deque[Seconds] = deque(maxlen=NUM_TIMES)
        self._watched: list[Seconds] = []
        self._total_s = self._own_s = self._extra_s = 0.0
        self._last_cost_s = self._cost_before_s = 0.0
        self._ended_s = self._began_s = 0.0
        self._opened_at = 0

    def start(self) -> None:
        """The loop begins."""
        self.step_begins()
        self._ended_s = self._began_s

    def step_ends(self) -> None:
        """A step is over."""
        now = self._clock()
        took = now - self._began_s
        self._total_s += took + self._began_s - self._ended_s
        self._ended_s = now
        self.steps += 1
        (self._watched if self.is_open else self._plain).append(took)

    def step_begins(self) -> None:
        """The next step begins: what was since the last one is ours."""
        self._began_s = self._clock()
        self._own_s += self._began_s - self._ended_s if self.steps else 0.0

    def opens(self) -> bool:
        """Whether a window is due."""
        if self.is_open or self.steps < WARM_STEPS:
            return False
        if self._opened_at == 0 or self.always:
            return True
        if self._every is not None:
            return self.steps - self._opened_at >= self._every
        return self._cost_s + self._last_cost_s <= self._max_overhead * self._total_s

    def closes(self) -> bool:
        """Whether the open window is over."""
        return self.is_open and not self.always and self.steps - self._opened_at >= self.window

    def opened(self) -> None:
        """A window is open."""
        self.is_open = True
        self._opened_at = self.steps
        self._cost_before_s = self._cost_s

    def closed(self) -> None:
        """The window is over."""
        if self.is_open:
            self._extra_s += self._open_extra_s
            self._watched.clear()
            self.is_open = False
            self._last_cost_s = self._cost_s - self._cost_before_s

    @property
    def _open_extra_s(self) -> Seconds:
        """What the steps of the open window took longer than steps usually do."""
        if not self._plain:
            return 0.0
        return max(0.0, sum(self._watched) - statistics.median(self._plain) * len(self._watched))

    @property
    def _cost_s(self) -> Seconds:
        return self._own_s + self._extra_s + self._open_extra_s

    @property
    def overhead_share(self) -> float | None:
        """What watching added, over what the steps take without it; `None` where no step ran unwatched."""
        if self.always or not self._plain:
            return None
        return self._cost_s / max(self._total_s - self._cost_s, 1e-12)
