"""Observing code that is not a workload: whatever is compiled while a block runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyrometer.compiler.build import build_report
from pyrometer.compiler.collecting.collector import Collector, collect
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.report import CompileReport


class ObservedCompile:
    """What was compiled; may be asked at any time, also after the block."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    @property
    def log(self) -> CompileLog:
        """Torch's own entries, for `export_log` or readers of your own."""
        return self._collector.log()

    def report(self) -> CompileReport:
        """Graphs, breaks, recompilations, guards and costs so far; nothing is run, so that nothing is known of steps."""
        return build_report(self._collector.log())


@contextlib.contextmanager
def observe_compile() -> Iterator[ObservedCompile]:
    """Record what torch.compile does while a block runs; for tests, notebooks, and code that is no workload.

    It costs nothing while nothing is compiled, and leaves torch's loggers as they were.

    >>> import torch
    >>> with observe_compile() as seen:
    ...     doubled = torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2))
    >>> seen.report().graphs
    1
    """
    with collect() as collector:
        yield ObservedCompile(collector)
