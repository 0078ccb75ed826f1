"""What a series of memory readings says, and how sure that is."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc

Outcome = Literal["leak", "warm-up", "stable", "inconclusive"]


class SeriesVerdict(Record, frozen=True, kw_only=True):
    """Whether memory grows without bound, judged from its readings alone."""

    verdict: Annotated[
        Outcome,
        doc("leak: steady growth; warm-up: growth that has ended; stable: none that matters; or undecided"),
    ]
    reason: Annotated[str, doc("what decided")]
    bytes_per_step: Annotated[float, doc("growth of the floor after the warm-up")]
    bytes_per_step_low: Annotated[float | None, doc("98 % interval; null where it cannot be bounded")] = None
    bytes_per_step_high: float | None = None
    eta_steps: Annotated[
        float | None, doc("steps from the last reading until the limit; null without growth or limit")
    ] = None
    eta_steps_low: float | None = None
    eta_steps_high: Annotated[float | None, doc("null where growth may be zero")] = None
    false_alarm_rate: Annotated[
        float,
        doc(
            "highest share of level, periodic, or bounded series that was called a leak in simulation; bounded ones count "
            "if their time constant is below two thirds of the readings"
        ),
    ]
    num_readings: int
    num_blocks: Annotated[int, doc("stretches whose lowest readings were judged")]
    block_steps: Annotated[float, doc("steps per block")]
    period_steps: Annotated[float | None, doc("after which the readings repeat; null where they do not")] = (
        None
    )
    more_steps: Annotated[int | None, doc("steps that would probably decide it; null when decided")] = None
    limit_bytes: Annotated[Bytes | None, doc("what the time to the limit refers to")] = None
