"""Looking at a source again and again, for several at once."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from pyrometer.monitor.live.fleet import Fleet
from pyrometer.monitor.live.record import LiveDocument
from pyrometer.monitor.live.sources import TickSource
from pyrometer.quantity import Seconds


class LiveWatch:
    """What a source has told so far; each tick is read once, however many look."""

    def __init__(self, source: TickSource, clock: Callable[[], Seconds] = time.time) -> None:
        self._source, self._clock = source, clock
        self._fleet = Fleet()
        self._lock = threading.Lock()
        self.num_ticks = 0

    def look(self, *, after_s: Seconds = -math.inf) -> LiveDocument:
        """Read what is new, and say what processes do now, with the moments that began after a time.

        Raises:
            InputError: the source cannot be reached.
        """
        with self._lock:
            fresh = self._source.fresh()
            self._fleet.add(fresh)
            self.num_ticks += len(fresh)
            return self._fleet.now(self._clock(), after_s=after_s)


def last_moment_s(now: LiveDocument, before_s: Seconds) -> Seconds:
    """After which moments the next look has to ask."""
    return max((moment.at_s for moment in now.moments), default=before_s)
