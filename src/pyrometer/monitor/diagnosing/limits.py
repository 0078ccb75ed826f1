"""How much a diagnosis may cost: so often, so long, so many bytes."""

from __future__ import annotations

from collections import deque

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record

DAY_S = 86400.0


class Limits(Record, frozen=True, kw_only=True):
    """Bounds of automatic diagnosis.

    Raises:
        InputError: a bound of zero or less.
    """

    requests: int = 20
    longest_s: Seconds = 10.0
    apart_s: Seconds = 600.0
    most_per_day: int = 10
    most_bytes: Bytes = 256 << 20
    trace_bytes: Bytes = 64 << 20

    def __post_init__(self) -> None:
        """Refuse bounds under which nothing could be collected."""
        for name in self.__struct_fields__:
            if getattr(self, name) <= 0:
                raise InputError(f"diagnosis: {name}: got {getattr(self, name):g}; legal is above 0")


class Allowance:
    """What is left of the limits; a pure state machine on given times.

    >>> allowance = Allowance(Limits(apart_s=60))
    >>> allowance.refusal(0.0), allowance.take(0.0), allowance.refusal(30.0)
    (None, None, 'the last one was 30 s ago, 60 s apart is allowed')
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._taken: deque[Seconds] = deque()
        self.bytes_kept = 0

    def refusal(self, now_s: Seconds) -> str | None:
        """Why nothing may be collected now; `None` where it may."""
        while self._taken and now_s - self._taken[0] >= DAY_S:
            self._taken.popleft()
        if self._taken and now_s - self._taken[-1] < self.limits.apart_s:
            ago_s = now_s - self._taken[-1]
            return f"the last one was {ago_s:.0f} s ago, {self.limits.apart_s:.0f} s apart is allowed"
        if len(self._taken) >= self.limits.most_per_day:
            return f"{len(self._taken)} were made within a day, which is all that is allowed"
        if self.bytes_kept >= self.limits.most_bytes:
            return f"{self.bytes_kept:,} bytes were kept, {self.limits.most_bytes:,} are allowed"
        return None

    def take(self, now_s: Seconds) -> None:
        """One is being made."""
        self._taken.append(now_s)
