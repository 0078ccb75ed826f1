"""From readings to alarms: one bad reading raises none, and one good reading ends none."""

from __future__ import annotations

import enum

from pyrometer.errors import InputError
from pyrometer.monitor.detecting.detector import Reading
from pyrometer.quantity import Seconds
from pyrometer.record import Record


class State(enum.StrEnum):
    """How an alarm stands."""

    QUIET = "quiet"
    PENDING = "pending"
    FIRING = "firing"


class Change(Record, frozen=True, kw_only=True):
    """An alarm began or ended."""

    at_s: Seconds
    firing: bool
    since_s: Seconds  # of the first reading over the limit
    reading: Reading


class Alarm:
    """Fires after `persistence` readings over the limit in a row, and ends after `recovery` readings below `clear`.

    >>> alarm = Alarm(persistence=2, recovery=1)
    >>> over = Reading(at_s=1, after=1, score=1.5, value=3, evidence="3 errors")
    >>> alarm.take(over), alarm.take(over).firing
    (None, True)
    """

    def __init__(self, persistence: int = 1, clear: float = 0.5, recovery: int = 3) -> None:
        if persistence < 1 or recovery < 1 or not 0 <= clear <= 1:
            raise InputError(
                f"alarm: got persistence={persistence}, clear={clear:g}, recovery={recovery}; "
                "legal are 1 or more, 0 to 1, 1 or more"
            )
        self._persistence, self._clear, self._recovery = persistence, clear, recovery
        self._over = self._below = 0
        self._since_s = 0.0
        self.state = State.QUIET

    def take(self, reading: Reading) -> Change | None:
        """Take a reading in; says when the alarm begins or ends."""
        if self.state is State.FIRING:
            return self._while_firing(reading)
        if reading.score < 1:
            self._over, self.state = 0, State.QUIET
            return None
        if self._over == 0:
            self._since_s = reading.at_s
        self._over += 1
        if self._over < self._persistence:
            self.state = State.PENDING
            return None
        self.state, self._below = State.FIRING, 0
        return self._change(reading, firing=True)

    def _while_firing(self, reading: Reading) -> Change | None:
        self._below = self._below + 1 if reading.score < self._clear else 0
        if self._below < self._recovery:
            return None
        self.state, self._over = State.QUIET, 0
        return self._change(reading, firing=False)

    def _change(self, reading: Reading, *, firing: bool) -> Change:
        return Change(at_s=reading.at_s, firing=firing, since_s=self._since_s, reading=reading)
