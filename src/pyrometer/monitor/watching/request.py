"""`with monitor.request("plan") as request:` watches a block of code, and takes what is known of it.

What begins in one callback of an event loop and ends in another is watched by `begin` and `end`.
"""

from __future__ import annotations

from time import perf_counter_ns
from types import TracebackType
from typing import Any

from pyrometer.monitor.watching.nesting import INSIDE
from pyrometer.monitor.watching.probe import Probe


class Request:
    """One block under watch.

    Attributes:
        units: what it is worth; one unless it is set.
        trace_id: under which its trace is found elsewhere; kept with the sampled ones.
        shape: of its input, as text.
        fields: what else is to be kept with the sampled ones.
    """

    __slots__ = ("_is_sample", "_probe", "_started", "_was_inside", "fields", "shape", "trace_id", "units")

    def __init__(self, probe: Probe | None, trace_id: str, fields: dict[str, Any]) -> None:
        self.units = 1.0
        self.trace_id = trace_id
        self.shape = ""
        self.fields = fields
        self._probe = probe
        self._is_sample = self._was_inside = False
        self._started = 0

    @property
    def is_sample(self) -> bool:
        """Whether shape, fields and trace id of this one are kept; known once it has begun."""
        return self._is_sample

    def begin(self) -> None:
        """It begins."""
        if self._probe is not None:
            intake = self._probe.intake
            self._is_sample = not intake.started.up() & intake.mask
            if self._is_sample:
                self._probe.before(num_own=0)
        self._started = perf_counter_ns()

    def end(self, error: BaseException | None = None) -> None:
        """It ends, or fails with an error; to be called once."""
        took = perf_counter_ns() - self._started
        if self._probe is None:
            return
        if error is not None:
            self._probe.fail(error, took, ())
            return
        intake = self._probe.intake
        intake.end(took)
        self._probe.add_units(self.units)
        if took > intake.limit_ns:
            self._probe.slow(took, ())
        if self._is_sample:
            self._probe.tell_request(took, self.trace_id, self.fields, self.shape)

    def __enter__(self) -> Request:  # noqa: PYI034 - typing.Self needs Python 3.11
        self.begin()
        self._was_inside = INSIDE.get()
        INSIDE.set(True)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        INSIDE.set(self._was_inside)
        self.end(error)
