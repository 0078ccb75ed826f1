"""What observers hand on to each other: the evidence so far, and what is too large to be part of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from pyrometer.evidence.evidence import Evidence
from pyrometer.hardware.peaks import Peaks
from pyrometer.trace.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Evidence, with the trace and the peaks of the machine that a page draws from; only the evidence is kept.

    Attributes:
        interrupted: Ctrl-C ended it once there was a measurement.
    """

    evidence: Evidence
    trace: Trace | None = None
    peaks: Peaks | None = None
    interrupted: bool = False

    def having(self, *notes: str, **parts: Any) -> Observed:
        """The same with more parts of the evidence, and with notes on what could not be observed."""
        told = [*self.evidence.notes, *notes]
        return replace(self, evidence=msgspec.structs.replace(self.evidence, **parts, notes=told))
