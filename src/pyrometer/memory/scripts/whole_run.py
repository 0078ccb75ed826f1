"""The peak of a whole run: a few microseconds wherever something begins or ends, for as long as the script runs.

The first steps are recorded operator by operator; after them only a meter is read. What it showed beside the tensors when the
recording ended is taken off from then on, so that a later reading stands for tensors too. What came and went between two
readings is seen in the process's highest resident memory, as far as it has been given back since.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from pyrometer.memory.profile import WholeRun
from pyrometer.memory.scripts.heap import Meter, best_meter, released_bytes
from pyrometer.quantity import Bytes, Seconds
from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.startup._pyrometer_inside.step_ends import ANOTHER, BETTER, STEP, StepEnds

MOST_SHARE = 0.01
"""Of the time, for the readings of resident memory, which take longer than those of the meter."""

LEAST_RELEASED = 4 * 2**20
"""Less that was resident between two readings, and is no longer, says nothing of tensors."""

RESOLUTION = 0.05
RESOLUTION_BYTES = 4 * 2**20
"""What else a process takes from malloc meanwhile: by so much a later reading must exceed the recorded steps to count."""

COMPILING_BYTES = 64 * 2**20
"""The same where the compiler, which works in this process, may be at work."""

_NAMES = {
    kinds.DATA_BEGIN: "data",
    kinds.FORWARD_BEGIN: "forward",
    kinds.BACKWARD_BEGIN: "backward",
    kinds.OPTIMIZER_BEGIN: "optimizer",
}


class Reading(NamedTuple):
    """What the meter showed beyond the others', and when."""

    live: Bytes = 0
    step: int = 0
    phase: str = ""


class WholeRunPeak:
    """Told of all that begins and ends in the script's main thread.

    Args:
        meter: of the process; by default the best that there is.
        released: highest resident memory, and how much of it has been given back.
        clock: seconds that this thread has computed, so that a reading does not seem dear while others have the processor.
    """

    def __init__(
        self,
        meter: Meter | None = None,
        released: Callable[[], tuple[Bytes, Bytes] | None] = released_bytes,
        clock: Callable[[], Seconds] = time.thread_time,
    ) -> None:
        self._meter = meter or best_meter()
        self._released = released
        self._clock = clock
        self._ends = StepEnds()
        self._steps = self._recorded_steps = 0
        self._others: Bytes | None = None  # what the meter shows beside tensors; None until it is known
        self._resident_peak: Bytes = 0
        self._next_s = 0.0
        self._peak = Reading()
        self._fullest = Reading()  # since resident memory was read, which happens later than what it shows
        self._is_transient = False
        self._least: Bytes = RESOLUTION_BYTES

    def compiles(self) -> None:
        """Code is compiled from here on, in this process."""
        self._least = COMPILING_BYTES

    def recorded(self, live_bytes: Bytes, *, steps: int) -> None:
        """The recording has ended, with so many bytes of tensors alive: the meter is read against them from now on."""
        released = self._released()
        self._others = self._meter.read() - live_bytes
        self._resident_peak = released[0] if released is not None else 0
        self._recorded_steps = self._steps = steps
        self._peak = max(self._peak, Reading(live_bytes))

    def at(self, kind: int, value: int) -> None:
        """Something of this kind begins or ends."""
        found = self._ends.at(kind, value)
        if self._others is not None:
            self._read(kind)
        if found & BETTER or (found & ANOTHER and self._steps <= 1):
            self._steps = 0
        if found & STEP:
            self._steps += 1

    def finish(self) -> None:
        """The script ends; what came and went since the last reading is seen now."""
        if self._others is not None:
            self._read_resident(self._now(0))

    def found(self, recorded_bytes: Bytes) -> WholeRun | None:
        """What is known until now, given the peak of the recorded steps; `None` while nothing but them has run."""
        if self._others is None:
            return None
        least = max(RESOLUTION * recorded_bytes, self._least)
        higher = self._peak.live > recorded_bytes + least
        return WholeRun(
            peak_bytes=self._peak.live if higher else recorded_bytes,
            peak_step=self._peak.step if higher else None,
            peak_phase=self._peak.phase if higher else None,
            num_steps=max(self._steps, self._recorded_steps),
            recorded_steps=self._recorded_steps,
            is_transient=higher and self._is_transient,
            resolution_bytes=round(least),
            source=self._meter.source,
        )

    def _now(self, kind: int) -> Reading:
        assert self._others is not None
        live = self._meter.read() - self._others
        return Reading(live, self._steps + 1, _phase_before(kind))  # the step that is running, from 1

    def _read(self, kind: int) -> None:
        reading = self._now(kind)
        self._fullest = max(self._fullest, reading)
        if reading.live > self._peak.live:
            self._peak, self._is_transient = reading, False
        now = self._clock()
        if now >= self._next_s:
            self._read_resident(reading)
            self._next_s = self._clock() + (self._clock() - now) / MOST_SHARE

    def _read_resident(self, reading: Reading) -> None:
        released = self._released()
        if released is not None and released[0] > self._resident_peak:
            self._resident_peak, gone = released
            peak = reading.live + gone
            if gone >= LEAST_RELEASED and peak > self._peak.live:
                was = self._fullest if 2 * self._fullest.live > peak else reading
                self._peak, self._is_transient = was._replace(live=peak), True
        self._fullest = Reading()


def _phase_before(kind: int) -> str:
    """What ran until something of this kind happened: where something ends that itself, else what is between steps."""
    return _NAMES.get(kind - 1) or "between phases"
