"""When to look: closely to begin with, then in windows, as far apart as their cost demands."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds

WARM_STEPS = 3
"""Steps before the first window; they build what stays."""

FIRST_STRETCH = 60
"""Steps that are watched one and all to begin with, unless the distance of windows is given: enough to decide."""

NUM_TIMES = 101
NUM_TIMES_TO_PRICE = 10


class Schedule:
    """Counts steps, times them, and says when a window opens and closes.

    Unless the distance of windows is given, the first one opens at once and is long enough to decide, whatever it costs.
    What a step in a window takes longer than the median step outside, and what happens between steps, is the cost. Unless
    the distance is given, a window opens when the cost of one more keeps all of it below the share that is allowed.

    Attributes:
        window: steps per window.
        steps: that are over.
        always: every step is in a window.
        is_open: a window is open.
        first: steps of the window that opens at once; 0 where the distance is given.
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
        self.first = max(window, FIRST_STRETCH) if every is None else 0
        self._every = every
        self._max_overhead = max_overhead
        self._clock = clock
        self._plain: deque[Seconds] = deque(maxlen=NUM_TIMES)
        self._watched: list[Seconds] = []
        self._total_s = self._own_s = self._extra_s = 0.0
        self._last_cost_s = self._cost_before_s = 0.0
        self._ended_s = self._began_s = 0.0
        self._opened_at: int | None = None

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
        if not self.is_open:
            self._plain.append(took)
        elif self.steps > WARM_STEPS:  # the first steps take long by themselves
            self._watched.append(took)

    def step_begins(self) -> None:
        """The next step begins: what was since the last one is ours."""
        self._began_s = self._clock()
        self._own_s += self._began_s - self._ended_s if self.steps else 0.0

    def opens(self) -> bool:
        """Whether a window is due."""
        if self.is_open or self.steps < WARM_STEPS:
            return False
        if self._opened_at is None or self.always:
            return True
        if self._every is not None:
            return self.steps - self._opened_at >= self._every
        if self._watched:  # the first window is priced when it is known what steps take without
            if len(self._plain) < NUM_TIMES_TO_PRICE:
                return False
            self._price()
        return self._cost_s + self._last_cost_s <= self._max_overhead * self._total_s

    def closes(self) -> bool:
        """Whether the open window is over."""
        if not self.is_open or self.always or self._opened_at is None:
            return False
        return self.steps - self._opened_at >= self._length

    def opened(self) -> None:
        """A window is open."""
        self.is_open = True
        self._opened_at = self.steps
        self._cost_before_s = self._cost_s

    def closed(self) -> None:
        """The window is over."""
        if self.is_open:
            self.is_open = False
            if self._plain:
                self._price()

    @property
    def opens_at_once(self) -> bool:
        """Whether a window is to open before the first step."""
        return self.always or self.first > 0

    @property
    def whole(self) -> bool:
        """Whether every step so far was in a window."""
        return self.always or 0 < self.steps <= self.first

    def steps_for(self, cohorts: int) -> int:
        """Steps after which so many were in windows of a given distance and are older than a window.

        >>> Schedule(60, 20, 0.03, lambda: 0.0).steps_for(30)
        93
        """
        windows, rest = divmod(cohorts - 1, self.window)
        return WARM_STEPS + windows * (self._every or self.window) + rest + self.window + 1

    @property
    def _length(self) -> int:
        """Steps of the window that was opened last."""
        return self.first if self.first and self._opened_at == 0 else self.window

    def _price(self) -> None:
        """What the last window cost, and so what the next one will."""
        self._extra_s += self._open_extra_s
        self._watched.clear()
        self._last_cost_s = (self._cost_s - self._cost_before_s) * self.window / self._length

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
