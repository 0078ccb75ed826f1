"""Observing code that is not a workload: whatever is compiled while a block runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyrometer.compiler.build import build_report
from pyrometer.compiler.collecting.collector import Collector, collect
from pyrometer.compiler.inspection.earlier import EarlierCode
from pyrometer.compiler.inspection.record import Runtime
from pyrometer.compiler.inspection.silence import silent_texts
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.recompiles.silent import GuardWatch
from pyrometer.compiler.report import CompileReport
from pyrometer.compiler.wording import listed

UNTOLD = (
    "calls that ran eagerly in silence: another profiler in Python was at work, and there can be only one"
)


class ObservedCompile:
    """What was compiled; may be asked at any time, also after the block."""

    def __init__(self, collector: Collector, earlier: EarlierCode, watch: GuardWatch) -> None:
        self._collector = collector
        self._earlier = earlier
        self._watch = watch

    @property
    def log(self) -> CompileLog:
        """Torch's own entries, for `export_log` or readers of your own."""
        return self._collector.log()

    def report(self) -> CompileReport:
        """Graphs, breaks, recompilations, guards and costs so far, and calls that ran eagerly without a word.

        Nothing is run, so that nothing is known of steps.
        """
        silent = self._watch.silent()
        return build_report(
            self._collector.log(),
            runtime=Runtime(silent_eager=silent) if silent else None,
            incomplete=self._earlier.names(),
            notes=[f"compiled code was passed over: {listed(silent_texts(silent))}"] if silent else [],
            unavailable=[*self._watch.unavailable, *([UNTOLD] if self._watch.unattributed else [])],
        )


@contextlib.contextmanager
def observe_compile() -> Iterator[ObservedCompile]:
    """Record what torch.compile does while a block runs; for tests, notebooks, and code that is no workload.

    A call of compiled code costs a fraction of a microsecond more; some microseconds where code is there that was compiled
    before the block. Torch's loggers are as they were at the end.

    >>> import torch
    >>> with observe_compile() as seen:
    ...     doubled = torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2))
    >>> seen.report().graphs
    1
    """
    earlier, watch = EarlierCode(), GuardWatch()
    with collect() as collector, watch, earlier.watching_lookups():
        yield ObservedCompile(collector, earlier, watch)
