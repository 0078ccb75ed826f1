"""The one call of many that is looked at closely, and those that fail or are slow; nothing here ever raises."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from pyrometer.monitor.tick import Event
from pyrometer.monitor.watching.device import DeviceTimer
from pyrometer.monitor.watching.intake import EventQueue, Failure, Intake, shape_of
from pyrometer.monitor.watching.nesting import is_nested
from pyrometer.monitor.watching.outputs import OutputCheck

CHECK_EVERY_NS = 100_000_000
"""Outputs are looked at ten times a second at most, so that large ones cost no more than 0.5 % of a core."""


class Callbacks(NamedTuple):
    """What a probe calls of the monitor."""

    fault: Callable[[BaseException], None]
    wake: Callable[[], None]
    ensure_running: Callable[[], None]


class Probe:
    """Looks at calls of one function."""

    def __init__(
        self,
        intake: Intake,
        events: EventQueue,
        callbacks: Callbacks,
        *,
        units: Callable[[Any], float] | None,
        on_device: bool,
        check_outputs: bool,
    ) -> None:
        self.intake = intake
        self.outputs = OutputCheck()
        self.device = DeviceTimer()
        self.units = units
        self._events = events
        self._callbacks = callbacks
        self._on_device = on_device
        self._check_outputs = check_outputs
        self._next_check_ns = 0
        self.is_part: bool | None = None
        """Whether all of its calls that were looked at ran within another watched call; None before there are any."""
        intake.has_units = units is not None

    def before(self, num_own: int = 1) -> Any:
        """A sampled call is about to begin; what it returns goes to `after`.

        Args:
            num_own: stand-ins of this call on the stack.
        """
        try:
            self._callbacks.ensure_running()
            if self.is_part is not False:
                self.is_part = is_nested(num_own)
            return self.device.begin() if self._on_device else None
        except Exception as error:  # noqa: BLE001 - the user's call goes on whatever we cannot do
            self._callbacks.fault(error)
            return None

    def after(self, begun: Any, took_ns: int, args: Any, output: Any) -> None:
        """A sampled call has returned."""
        try:
            self.device.end(begun)
            now = time.perf_counter_ns()
            if self._check_outputs and now >= self._next_check_ns:
                self._next_check_ns = now + CHECK_EVERY_NS
                self.outputs.look(output)
            self._tell("sample", took_ns, args)
        except Exception as error:  # noqa: BLE001 - likewise
            self._callbacks.fault(error)

    def slow(self, took_ns: int, args: Any) -> None:
        """A call took longer than the limit: the monitor's thread is woken at once."""
        try:
            self._tell("slow", took_ns, args)
            self._callbacks.wake()
        except Exception as error:  # noqa: BLE001 - likewise
            self._callbacks.fault(error)

    def fail(self, error: BaseException, took_ns: int, args: Any) -> None:
        """A call raised; the error goes on to the caller."""
        try:
            self._callbacks.ensure_running()
            self.intake.fail(Failure(type(error).__name__, took_ns, *shape_of(args)))
        except Exception as fault:  # noqa: BLE001 - likewise
            self._callbacks.fault(fault)

    def add_units(self, output: Any) -> None:
        """Count what an output is worth."""
        try:
            assert self.units is not None
            if len(self.intake.units) >= self.intake.capacity:
                raise OverflowError(f"{self.intake.name}: units of {self.intake.capacity} calls wait")  # noqa: TRY301
            self.intake.units.append(float(self.units(output)))
        except Exception as error:  # noqa: BLE001 - the user's function may raise anything
            self._callbacks.fault(error)

    def _tell(self, event: str, took_ns: int, args: Any, **more: Any) -> None:
        if not self._events.has_room():
            return
        shape, batch = shape_of(args)
        self._events.add(
            Event(
                at_s=time.time(),
                event=event,
                call=self.intake.name,
                latency_s=took_ns / 1e9,
                shape=shape,
                batch=batch,
                memory_bytes=allocated_bytes() if self._on_device else None,
                **more,
            )
        )

    def tell_request(self, took_ns: int, trace_id: str, fields: dict[str, Any], shape: str) -> None:
        """A sampled request has ended, with what the user said of it."""
        try:
            if self._events.has_room():
                event = Event(
                    at_s=time.time(),
                    event="sample",
                    call=self.intake.name,
                    latency_s=took_ns / 1e9,
                    shape=shape,
                    trace_id=trace_id,
                    fields=fields,
                )
                self._events.add(event)
        except Exception as error:  # noqa: BLE001 - likewise
            self._callbacks.fault(error)


def allocated_bytes() -> int | None:
    """What torch has allocated on the current device; None before CUDA is in use."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return int(torch.cuda.memory_allocated())
