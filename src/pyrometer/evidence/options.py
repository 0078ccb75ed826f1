"""What observers are told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyrometer.bench.measure import DEFAULT_BUDGET_S
from pyrometer.bench.stage import Progress
from pyrometer.quantity import Seconds


def silent(_share: float, _what: str) -> None:
    """The progress of someone who does not ask."""


@dataclass(frozen=True, kw_only=True)
class ObserveOptions:
    """How much time to take, and where to look.

    Attributes:
        budget_s: time to measure; each other observer takes up to a third on top.
        confidence: of intervals.
        peaks_folder: where measured peaks of machines are kept; without it there is no roofline on a CPU.
        compiling: try torch.compile on a program that does not use it.
        command: what the user typed before the target, for hints; empty in library use.
        latest_s: no observer is begun so many seconds after the first one; `None` for all.
        progress: told of the share done, and of what is being done.
    """

    budget_s: Seconds = DEFAULT_BUDGET_S
    confidence: float = 0.99
    peaks_folder: Path | None = None
    compiling: bool = False
    command: str = "pyrometer check"
    latest_s: Seconds | None = None
    progress: Progress = silent
