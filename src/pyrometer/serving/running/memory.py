"""The memory of a server: growth that its interval proves is told, and at a limit the server ends as at SIGTERM.

Whoever is killed for want of memory loses what it had accepted; who ends before answers all of it, and is started again by whoever
supervises it. A model may grow for days before it matters, so that the slope alone ends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from pyrometer.hardware.cgroup import memory_limit
from pyrometer.monitor.detecting.alarm import Alarm
from pyrometer.monitor.detecting.limit import Limit
from pyrometer.monitor.detecting.listener import MEMORY_SERIES, Detection, Notice
from pyrometer.monitor.detecting.watch import Guard
from pyrometer.monitor.tick import Event, Tick
from pyrometer.quantity import Bytes

RESIDENT = MEMORY_SERIES[0]
OF_CONTAINER = 0.95
"""Of what the container may have: where the limit lies unless somebody sets one."""


class MemoryWatch(Detection):
    """Judges the memory of the process and of the device; latencies and errors are the business of others.

    Args:
        most_bytes: of resident memory; None for 95 % of the container's, and no limit where it has none.
        say: is told of each alarm in one line.
        end: is called when the limit is reached, with why.
    """

    def __init__(
        self, most_bytes: Bytes | None, say: Callable[[str], None], end: Callable[[str], None]
    ) -> None:
        super().__init__(told=[self._heed])
        self._say, self._end = say, end
        granted = memory_limit()
        if most_bytes is None and granted is not None:
            most_bytes = round(OF_CONTAINER * granted)
        if most_bytes is not None:
            self.watch(RESIDENT, lambda: [Guard("limit", Limit(most_bytes), Alarm())])
        self._has_limit = most_bytes is not None

    def samples(self, _call: str, _at_s: float, _latencies_s: Sequence[float], /) -> None:
        """Nothing: a latency here follows the load."""

    def tick(self, tick: Tick, /) -> Sequence[Event]:
        """Judge what is resident and what is allocated."""
        if self._has_limit and RESIDENT in tick.gauges:
            self.look(RESIDENT, tick.at_s, [tick.gauges[RESIDENT]])
        return super().tick(structs.replace(tick, calls={}))

    def _heed(self, notice: Notice) -> None:
        evidence = notice.change.reading.evidence
        self._say(f"{'alarm' if notice.change.firing else 'alarm ended'}: {notice.name}: {evidence}")
        if notice.signal == RESIDENT and notice.change.firing:
            self._end(evidence)
