"""Starts the observation in a fresh interpreter, before the script."""

from __future__ import annotations

import atexit
import os
from _thread import get_ident

from . import kinds
from .import_hook import after_import
from .log import EventLog
from .memory import resident_peak_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .observer import Follower, Observer


class Observation:
    """The life of one observation: from the start of the interpreter to its end, in one process."""

    def __init__(
        self, log: EventLog, trace_request: str | None = None, follow_request: str | None = None
    ) -> None:
        self._log = log
        self._trace_request = trace_request
        self._follow_request = follow_request
        self._observer: Observer | None = None
        self._pid = os.getpid()
        self._main_thread = get_ident()

    def torch_imported(self, torch: Any) -> None:
        """Install the hooks; what fails here is reported in the log and never reaches the script."""
        self._log.add(kinds.TORCH_IMPORTED)
        if os.getpid() != self._pid:
            return
        try:
            # Only now: these need modules that torch has loaded anyway.
            from .observer import Observer
            from .torch_hooks import install

            self._observer = Observer(self._log, torch, self._main_thread, self._follower(torch))
            _, missing = install(torch, self._observer)
        except Exception:  # noqa: BLE001 - see above
            missing = ["torch's import"]
        for name in missing:
            self._log.add(kinds.word(kinds.NOT_OBSERVED, kinds.HOOK_POINTS.index(name)))

    def _follower(self, torch: Any) -> Follower | None:
        if self._follow_request is not None:
            return _requested(torch, self._follow_request)
        if self._trace_request is None:
            return None
        import json

        from .module_spans import ModuleSpans, SpansBeside
        from .torch_hooks import hide_from_compiler
        from .tracer import Tracer

        hide_from_compiler(torch, Tracer, ModuleSpans, SpansBeside)
        request = json.loads(self._trace_request)
        tracer = Tracer(torch, self._log, request)
        if request.get("host") is None:
            return tracer
        from .host_steps import HostSteps

        hide_from_compiler(torch, HostSteps)
        return HostSteps(self._log, request["host"], tracer)

    def forked(self) -> None:
        """A child process is not observed."""
        self._log.detach()
        if self._observer is not None:
            self._observer.detach()

    def finish(self) -> None:
        """Log what is known only at the end; runs after the script's own exit functions."""
        if os.getpid() == self._pid:
            finish_log(self._log, self._observer)


def finish_log(log: EventLog, observer: Observer | None, compiled_before_ns: int = 0) -> None:
    """Log what is known only at the end; `compiled_before_ns` is time that compilers had taken before the log began."""
    if observer is not None:
        observer.resolve()
    if log.is_full:
        log.open_tail()
        log.add(kinds.LOG_FULL)
    if observer is not None:
        from .torch_hooks import compile_ns

        log.add(kinds.word(kinds.ELSEWHERE, observer.elsewhere))
        spent_ns = compile_ns()
        if spent_ns is not None:
            log.add(kinds.word(kinds.COMPILE_NS, max(0, spent_ns - compiled_before_ns)))
    peak = resident_peak_bytes()
    if peak is not None:
        log.add(kinds.word(kinds.RESIDENT_PEAK_BYTES, peak))
    log.add(kinds.ENDED)


def _requested(torch: Any, follow_request: str) -> Follower | None:
    """What the request names, from a library that this Python may not have: then a file says so."""
    import importlib
    import json
    import warnings

    request = json.loads(follow_request)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make = getattr(importlib.import_module(request["module"]), request["name"])
            follower: Follower = make(torch, request["settings"])
    except Exception as error:  # noqa: BLE001 - the script must run whatever happens to us; the parent reports it
        with open(request["failure"], "w") as report:  # noqa: PTH123 - pathlib is not loaded here
            report.write(f"{type(error).__name__}: {error}")
        return None
    return follower


def start(
    path: str,
    trace_request: str | None = None,
    follow_request: str | None = None,
    is_asked: bool = False,
) -> None:
    """Observe this process into the event log at `path`; trace some of its steps, or follow it, if that is asked for.

    With `is_asked` it also answers where it is, whenever a file beside the log asks.
    """
    observation = Observation(EventLog(path), trace_request, follow_request)
    after_import("torch", observation.torch_imported)
    if is_asked:
        from .asked import answer_when_asked

        answer_when_asked(path, get_ident())
    os.register_at_fork(after_in_child=observation.forked)
    atexit.register(observation.finish)
