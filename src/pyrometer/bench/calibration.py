"""What `calibrate` found out about a machine."""

from __future__ import annotations

from typing import Annotated

from pyrometer.bench.comparison.verdict import Outcome
from pyrometer.bench.quality import Caveat
from pyrometer.hardware.peaks import Peaks
from pyrometer.hardware.record import Conditions
from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc


class Resolution(Record, frozen=True, kw_only=True):
    """What can be told apart on this machine for steps of one length."""

    name: str
    step_s: Seconds
    metric: str
    num_blocks: int
    block_s: Annotated[Seconds, doc("time that one paired block takes")]
    noise: Annotated[float, doc("robust standard deviation of ln(ratio) over blocks")]
    resolves_10s: Annotated[Ratio, doc("smallest difference that 10 s would decide, as a share: 0.02 is 2 %")]
    resolves_60s: Annotated[Ratio, doc("smallest difference that 60 s would decide")]
    outcome: Annotated[Outcome, doc("of the A/A comparison itself")]
    false_share: Annotated[
        float, doc("share of wrong verdicts when the labels of the blocks are flipped at random")
    ]


class Calibration(Record, frozen=True, kw_only=True):
    """What this machine can resolve, and its measured peaks."""

    resolutions: list[Resolution]
    peaks: Annotated[Peaks | None, doc("null when they were not measured")]
    conditions: Conditions | None
    advice: Annotated[list[Caveat], doc("what makes this machine noisy, and what to do about it")]
    elapsed_s: Seconds
