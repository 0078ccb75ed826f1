"""What a check is asked for beside its target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyrometer.bench.measure import DEFAULT_BUDGET_S
from pyrometer.hardware.peaks import Peaks
from pyrometer.quantity import Seconds
from pyrometer.rules.settings import RuleSettings
from pyrometer.trace.trace import Trace


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """How much time to take, and where to look.

    Attributes:
        budget_s: time to measure; each observer takes up to a third on top.
        confidence: of intervals.
        peaks_folder: where measured peaks of machines are kept; without it there is no roofline on a CPU.
        compiling: try torch.compile on a program that does not use it.
        entries: files that the program begins with, whose source the rules read.
        rules: which rules to ask, and their limits.
        on_trace: is given the trace and the measured peaks before it is let go, since a checkup keeps only what it says.
    """

    budget_s: Seconds = DEFAULT_BUDGET_S
    confidence: float = 0.99
    peaks_folder: Path | None = None
    compiling: bool = False
    entries: tuple[Path, ...] = ()
    rules: RuleSettings = field(default_factory=RuleSettings)
    on_trace: Callable[[Trace, Peaks | None], None] | None = None
