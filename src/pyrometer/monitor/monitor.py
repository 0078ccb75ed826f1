"""`pm.Monitor`: watches the calls of a program in production, in half a microsecond each.

::

    monitor = pm.Monitor(model="perception", version="v2.1", device="cuda:0")

    @monitor.watch(units=len)
    def infer(frames): ...

    monitor.snapshot()     # {"requests": 12, "errors": 0, "p50_s": 0.0041, …}

The monitor's thread starts with the first call, in a forked child with the first call there. `PYROMETER_DISABLE=1` makes all of
it do nothing: `watch` gives back the function itself.
"""

from __future__ import annotations

import atexit
import os
import socket
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pyrometer.errors import InputError
from pyrometer.monitor.collector import Clocks, Collector
from pyrometer.monitor.export.metrics import METRICS, Metric
from pyrometer.monitor.export.outlet import Sink
from pyrometer.monitor.exporting import Exports
from pyrometer.monitor.instruments import Counter, Gauge, HistogramInstrument, Instrument, split_series
from pyrometer.monitor.opening import OpenCalls
from pyrometer.monitor.settings import load_monitor_settings
from pyrometer.monitor.signals.signal import Signal
from pyrometer.monitor.signals.system import SystemSignal
from pyrometer.monitor.signals.torch_state import AllocatorSignal, CompilerSignal, GpuSignal
from pyrometer.monitor.tick import Calls, Listener, Source, Tick, merge_calls
from pyrometer.monitor.watching.intake import EventQueue, Intake
from pyrometer.monitor.watching.probe import Callbacks, Probe
from pyrometer.monitor.watching.request import Request
from pyrometer.monitor.watching.wrapping import watched
from pyrometer.monitor.windows import MINUTE_S
from pyrometer.quantity import Seconds
from pyrometer.settings import parse_switch

if TYPE_CHECKING:
    from pyrometer.monitor.detecting.listener import Detection
    from pyrometer.monitor.training import TrainingWatch

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M")
I = TypeVar("I", bound="Counter | Gauge | HistogramInstrument")  # noqa: E741 - as F and M
MOST_CALLS = 200
"""Functions that are told apart; further names count as `other`."""
_LIVING: weakref.WeakSet[Monitor] = weakref.WeakSet()


def is_disabled(environ: Mapping[str, str]) -> bool:
    """Whether `PYROMETER_DISABLE` is set."""
    return parse_switch(environ.get("PYROMETER_DISABLE") or "0")


class Monitor:
    """Watches functions, modules and blocks; adds up, checks and sends what it sees."""

    def __init__(
        self,
        model: str | None = None,
        *,
        version: str | None = None,
        device: str | None = None,
        labels: Mapping[str, str] | None = None,
        clocks: Clocks | None = None,
        **settings: Any,
    ) -> None:
        """Take the settings; nothing runs yet, and no file is written.

        Args:
            model: name of what is watched.
            version: of the model, as you count.
            device: where it runs; with `cuda:0` sampled calls are timed between events, and its memory is told.
            labels: of every series of this process.
            clocks: for tests.
            settings: any other key of `[tool.pyrometer.monitor]`, which these win over.

        Raises:
            InputError: an unknown setting or a bad value, or a package that a setting needs is missing.
            UsageError: other machines could read `/metrics`, and no token keeps them out.
        """
        self.disabled = is_disabled(os.environ)
        self.settings = load_monitor_settings(
            Path.cwd(),
            model=model,
            version=version,
            device=device,
            labels=None if labels is None else dict(labels),
            **settings,
        )
        self._host = socket.gethostname()
        self._probes: dict[str, Probe] = {}
        self._wrapped: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._events = EventQueue(self.settings.most_events)
        self._collector = Collector(
            self._source, self._events, self._deliver, tick_s=self.settings.tick_s, clocks=clocks
        )
        self._on_device = self.settings.device.startswith("cuda")
        self._is_closed = False
        self._callbacks = Callbacks(
            self._collector.fault, self._collector.wake, self._collector.ensure_running
        )
        if self.disabled:
            return
        self._exports = Exports(self.settings, self._declared, self.snapshot, self._collector.fault)
        self._collector.signals += [CompilerSignal(), SystemSignal()]
        if self._on_device:
            self._collector.signals += [
                AllocatorSignal(self.settings.device),
                GpuSignal(self.settings.device),
            ]
        _LIVING.add(self)
        atexit.register(_close_if_alive, weakref.ref(self))

    @overload
    def watch(self, function: F, /) -> F: ...
    @overload
    def watch(
        self,
        /,
        *,
        name: str | None = None,
        units: Callable[[Any], float] | None = None,
        limit_s: Seconds | None = None,
    ) -> Callable[[F], F]: ...
    def watch(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        units: Callable[[Any], float] | None = None,
        limit_s: Seconds | None = None,
    ) -> Any:
        """Watch a function: a plain one, a coroutine, a generator or an asynchronous generator.

        Args:
            function: with `@monitor.watch` alone.
            name: under which it is told; by default its own.
            units: what an output is worth, such as `len`; of a generator, what an item is worth.
            limit_s: a call that takes longer is told at once; by default that of the settings.
        """

        def watching(target: Callable[..., Any]) -> Callable[..., Any]:
            if self.disabled:
                return target
            chosen = str(name or getattr(target, "__name__", type(target).__name__))
            return watched(target, self._probe(chosen, units, limit_s))

        return watching if function is None else watching(function)

    def wrap(self, module: M, *, name: str | None = None, units: Callable[[Any], float] | None = None) -> M:
        """Watch the calls of a module, which stays the same object; compile it before, not after.

        `close()` and `unwrap(module)` undo it. While it is watched the module cannot be pickled; its `state_dict` can.
        """
        if self.disabled or module in self._wrapped:
            return module
        attributes = vars(module)
        self._wrapped[module] = attributes.get("forward")
        chosen = name or type(getattr(module, "_orig_mod", module)).__name__
        forward: Callable[..., Any] = module.forward  # type: ignore[attr-defined]
        attributes["forward"] = watched(forward, self._probe(chosen, units, None))
        return module

    def unwrap(self, module: Any) -> None:
        """Watch a module no longer."""
        if module in self._wrapped:
            before = self._wrapped.pop(module)
            if before is None:
                vars(module).pop("forward", None)
            else:
                vars(module)["forward"] = before

    def request(self, name: str = "request", *, trace_id: str = "", **fields: Any) -> Request:
        """Watch a block: `with monitor.request("plan", route="a") as request:`; costs a microsecond.

        Args:
            name: under which it is told.
            trace_id: under which its trace is found elsewhere.
            fields: kept with the requests that are told in full.
        """
        probe = None if self.disabled else self._probes.get(name) or self._probe(name, _itself, None)
        return Request(probe, trace_id, fields)

    def training(
        self,
        optimizer: Any = None,
        *,
        scaler: Any = None,
        name: str = "step",
        every: int = 10,
        detection: Detection | None = None,
    ) -> TrainingWatch:
        """Watch a training loop: `with monitor.training(optimizer) as training:`; in it `training.step(loss)` ends each step.

        Args:
            optimizer: whose gradients are looked at before its step.
            scaler: of mixed precision, whose scale is told.
            name: under which steps are told.
            every: gradients and scale are looked at in one step of so many.
            detection: judges the training; by default one of its own, which the monitor gets.
        """
        from pyrometer.monitor.detecting.listener import Detection  # its statistics take a second to import
        from pyrometer.monitor.training import TrainingWatch

        judge = detection or Detection()
        if every < 1:
            raise InputError(f"training: every: got {every}; legal is 1 or more")
        if self.disabled:
            return TrainingWatch(None, self._callbacks, judge)

        def leave(training: TrainingWatch) -> None:
            self._collector.signals.remove(training)
            self._collector.listeners.remove(training)
            if detection is None:
                self._collector.listeners.remove(judge)

        probe = self._probe(name, None, None)
        made = TrainingWatch(
            probe, self._callbacks, judge, optimizer=optimizer, scaler=scaler, every=every, leave=leave
        )
        self._collector.signals.append(made)
        self._collector.listeners += [made] if detection is not None else [made, judge]
        return made

    def counter(self, name: str, description: str = "", labels: Sequence[str] = ()) -> Counter:
        """Declare a counter of your own; again gives the same.

        Raises:
            InputError: a name that a metric cannot have, or that is declared otherwise.
        """
        return self._declare(Counter, name, description, labels)

    def gauge(self, name: str, description: str = "", labels: Sequence[str] = ()) -> Gauge:
        """Declare a gauge of your own; raises as `counter` does."""
        return self._declare(Gauge, name, description, labels)

    def histogram(self, name: str, description: str = "", labels: Sequence[str] = ()) -> HistogramInstrument:
        """Declare a histogram of your own; raises as `counter` does."""
        return self._declare(HistogramInstrument, name, description, labels)

    def add(self, listener: Listener) -> None:
        """Let something look at every tick, and at all latencies; its gauges are told where it is a `Signal`, too."""
        if not self.disabled:
            self._collector.listeners.append(listener)
            if isinstance(listener, Signal):
                self._collector.signals.append(listener)

    def send_to(self, sink: Sink) -> None:
        """Send every tick somewhere else, too, from a thread of its own."""
        if not self.disabled:
            self._exports.add(sink)

    def start(self) -> Monitor:
        """Begin before the first call: `/metrics` answers, and gauges of the machine are told."""
        if not self.disabled:
            self._exports.serve()
            self._collector.ensure_running()
        return self

    @property
    def port(self) -> int | None:
        """The port of `/metrics`; None while this process serves none."""
        if self.disabled or self._exports.server is None:
            return None
        return self._exports.server.port

    def metrics_page(self) -> bytes:
        """What `/metrics` answers with, for a server of your own."""
        return b"" if self.disabled else self._exports.render()

    def last(self, span_s: Seconds) -> Tick:
        """What happened within the last seconds, minutes, or hour, as one tick."""
        return Tick(span_s=0.0) if self.disabled else self._exports.windows.last(span_s)

    def snapshot(self) -> dict[str, Any]:
        """How it stands: counts since the start; quantiles of the last minute, None without calls; what is alarming.

        A request is an outermost watched call. Functions whose calls ran within another watched call each time that one was looked at are
        parts of requests, and count under their own names alone.
        """
        if self.disabled:
            return _snapshot(Calls(), 0, 0, 0, [])
        parts = {name for name, probe in list(self._probes.items()) if probe.is_part}
        open_calls = [one for name, one in self._collector.so_far().items() if name not in parts]
        minute = self._exports.windows.last(MINUTE_S)
        recent = [one for name, one in minute.calls.items() if name not in parts]
        now = merge_calls([*open_calls, Calls()])
        counters = self._exports.totals.now().counters

        def counted(metric: str) -> int:
            of = [split_series(series) for series in counters]
            values = zip(of, counters.values(), strict=True)
            return int(
                sum(
                    value
                    for (name, labels), value in values
                    if name == metric and labels.get("call") not in parts
                )
            )

        return _snapshot(
            merge_calls([*recent, now]),
            counted("requests") + now.num_ended + now.num_failed,
            counted("request_errors") + now.num_failed,
            counted("samples_dropped") + now.num_dropped,
            self._collector.alarms(),
        ) | {"in_flight": sum(one.in_flight for one in open_calls)}

    def flush(self, timeout_s: Seconds = 5.0) -> bool:
        """End the open second now, and wait until it is written everywhere; False where that takes too long."""
        if self.disabled or self._is_closed:
            return True
        self._collector.tick()
        return self._exports.flush(timeout_s)

    def close(self, timeout_s: Seconds = 2.0) -> None:
        """Write the last tick, let modules go and end all threads; calls of watched functions go on unwatched."""
        if self.disabled or self._is_closed:
            return
        self._is_closed = True
        self._collector.end(timeout_s)
        self._collector.tick()
        self._exports.close(timeout_s)
        for module in list(self._wrapped):
            self.unwrap(module)

    def __enter__(self) -> Monitor:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _probe(self, name: str, units: Callable[[Any], float] | None, limit_s: Seconds | None) -> Probe:
        name = name if name in self._probes or len(self._probes) < MOST_CALLS else "other"
        known = self._probes.get(name)
        if known is not None:
            known.units = units or known.units
            return known
        settings = self.settings
        limit_s = settings.limit_s if limit_s is None else limit_s
        intake = Intake(
            name,
            capacity=settings.capacity,
            mask=settings.sample_every - 1,
            limit_ns=None if limit_s is None else round(limit_s * 1e9),
        )
        probe = Probe(
            intake,
            self._events,
            self._callbacks,
            units=units,
            on_device=self._on_device,
            check_outputs=settings.check_outputs,
        )
        self._probes[name] = probe
        self._collector.open[name] = OpenCalls(probe)
        return probe

    def _declare(self, kind: type[I], name: str, description: str, labels: Sequence[str]) -> I:
        known = self._collector.instruments.get(name)
        if isinstance(known, kind) and known.labels == tuple(labels):
            return known
        if known is not None or name in METRICS:
            whose = (
                f"a {known.kind} with labels {known.labels}" if known else "one of the monitor's own metrics"
            )
            raise InputError(f"{name}: it is {whose} already; choose another name")
        made = kind(
            name,
            description,
            labels,
            most_series=self.settings.most_series,
            capacity=self.settings.capacity,
            ensure_running=self._collector.ensure_running,
            fault=self._collector.fault,
        )
        if self.disabled:
            made.switch_off()
        else:
            self._collector.instruments[name] = made
        return made

    def _declared(self) -> dict[str, Metric]:
        found: dict[str, Instrument[Any]] = dict(self._collector.instruments)
        return {name: Metric(one.kind, one.description or name) for name, one in found.items()}

    def _source(self) -> Source:
        settings = self.settings
        return Source(
            model=settings.model,
            version=settings.version,
            device=settings.device,
            host=self._host,
            pid=os.getpid(),
            labels=settings.labels,
        )

    def _deliver(self, tick: Tick) -> None:
        self._exports.take(tick)

    def forget(self) -> None:
        """Begin anew in a forked child; done by itself."""
        self._exports.forget()
        self._collector.forget()


def _itself(units: Any) -> float:
    return float(units)


def _snapshot(recent: Calls, requests: int, errors: int, dropped: int, alarms: list[str]) -> dict[str, Any]:
    found = recent.latency_s
    quantiles = (
        dict.fromkeys(("p50_s", "p95_s", "p99_s"))
        if not found.count
        else {"p50_s": found.quantile(0.5), "p95_s": found.quantile(0.95), "p99_s": found.quantile(0.99)}
    )
    return {
        "requests": requests,
        "errors": errors,
        **quantiles,
        "in_flight": 0,
        "dropped_samples": dropped,
        "alarms": alarms,
    }


def _close_if_alive(monitor: weakref.ref[Monitor]) -> None:
    found = monitor()
    if found is not None:
        found.close()


def _forget_all() -> None:
    for monitor in list(_LIVING):
        monitor.forget()


os.register_at_fork(after_in_child=_forget_all)
