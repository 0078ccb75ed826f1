"""What a measurement tells while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from pyrometer.quantity import Seconds

Progress = Callable[[float, str], None]
"""Is told the share that is done, from 0 to 1, and what is under way."""


@final
class Stage(str):
    """What is under way, with the figures behind it: a plain text to those who want no more.

    >>> stage = Stage("measuring", num_samples=12, step_s=0.004)
    >>> f"{stage}: {stage.num_samples} samples"
    'measuring: 12 samples'
    """

    __slots__ = ("expected_s", "num_samples", "step_s", "until")

    num_samples: int | None
    """Taken so far."""

    step_s: Seconds | None
    """How long the last step took."""

    until: float | None
    """The share that will be done when this stage ends."""

    expected_s: Seconds | None
    """How long this stage usually lasts."""

    def __new__(
        cls,
        text: str,
        *,
        num_samples: int | None = None,
        step_s: Seconds | None = None,
        until: float | None = None,
        expected_s: Seconds | None = None,
    ) -> Stage:
        """A text with its figures."""
        stage = super().__new__(cls, text)
        stage.num_samples, stage.step_s = num_samples, step_s
        stage.until, stage.expected_s = until, expected_s
        return stage


def part_of(progress: Progress, begin: float, end: float, expected_s: Seconds) -> Progress:
    """What a part of the whole tells its progress: its shares, from 0 to 1, lie between two of the whole.

    >>> def show(share: float, what: str) -> None:
    ...     print(f"{share:.0%} {what}, until {what.until:.0%}")
    >>> part_of(show, 0.5, 0.7, 2.0)(0.5, "tracing")
    60% tracing, until 70%
    """

    def tell(share: float, what: str) -> None:
        stage = Stage(
            what,
            num_samples=getattr(what, "num_samples", None),
            step_s=getattr(what, "step_s", None),
            until=end,
            expected_s=expected_s,
        )
        progress(begin + (end - begin) * min(max(share, 0.0), 1.0), stage)

    return tell
