"""What a measurement tells while it goes on."""

from __future__ import annotations

from typing import final

from pyrometer.quantity import Seconds


@final
class Stage(str):
    """What is under way, with the figures behind it: a plain text to those who want no more.

    >>> stage = Stage("measuring", num_samples=12, step_s=0.004)
    >>> f"{stage}: {stage.num_samples} samples"
    'measuring: 12 samples'
    """

    __slots__ = ("num_samples", "step_s")

    num_samples: int
    """Taken so far."""

    step_s: Seconds
    """How long the last step took."""

    def __new__(cls, text: str, *, num_samples: int, step_s: Seconds) -> Stage:
        """A text with its figures."""
        stage = super().__new__(cls, text)
        stage.num_samples, stage.step_s = num_samples, step_s
        return stage
