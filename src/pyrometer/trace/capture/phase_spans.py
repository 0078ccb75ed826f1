"""A span around each phase of a step, from marks that come only at the end of a phase."""

from __future__ import annotations

from typing import Any

import torch

from pyrometer.workload.script.startup._pyrometer_inside.kineto import PHASE, sanitised
from pyrometer.workload.workload import Session


class PhaseSpans:
    """Runs phased steps in which `phase:<name>` spans cover the phases.

    A span must have its name when it begins, but a session names a phase when it ends. The order of the phases is
    therefore learned in a step without spans, and each step that is traced has to keep to it.

    Attributes:
        deviated: whether a step passed through other phases than the one before it; its spans may be misnamed.
    """

    def __init__(self, session: Session) -> None:
        self.deviated = False
        self._session = session
        self._order: list[str] = []
        self._seen: list[str] = []
        self._span: Any = None

    def learn(self) -> None:
        """Run a step without spans, and note its phases."""
        order: list[str] = []
        self._session.phased_step(order.append)
        self._order = order

    def step(self) -> None:
        """Run a step with spans; learns anew from a step that deviates."""
        self._seen = []
        self._open()
        try:
            self._session.phased_step(self._mark)
        finally:
            self._close()
        if self._seen != self._order:
            self.deviated = True
            self._order = self._seen

    def _mark(self, phase: str) -> None:
        self._close()
        self._seen.append(phase)
        self._open()

    def _open(self) -> None:
        if len(self._seen) < len(self._order):
            self._span = torch.profiler.record_function(sanitised(PHASE + self._order[len(self._seen)]))
            self._span.__enter__()

    def _close(self) -> None:
        span, self._span = self._span, None
        if span is not None:
            span.__exit__(None, None, None)
