"""What limits the trust in a measurement, and what to do next.

A caveat knows what the user already did: nobody is told to raise a budget that was not the reason.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

from pyrometer.advice import Advice
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc


class CaveatCode(enum.StrEnum):
    """Every reservation that can be made about a measurement or a verdict."""

    FIRST_CALL_ONLY = "first_call_only"
    NOT_STEADY = "not_steady"
    DRIFTING = "drifting"
    FEW_SAMPLES = "few_samples"
    WIDE_INTERVAL = "wide_interval"
    TAIL_UNBOUNDED = "tail_unbounded"
    AUTOCORRELATED = "autocorrelated"
    BATCHED = "batched"
    COMPILED_WHILE_STEADY = "compiled_while_steady"
    COMPETING_LOAD = "competing_load"
    STEAL = "steal"
    THROTTLED = "throttled"
    FREQUENCY_CHANGED = "frequency_changed"
    RETURNS_UNFINISHED = "returns_unfinished"
    WORK_PUT_OFF = "work_put_off"
    ANSWERS_KEPT = "answers_kept"
    NAN_OUTPUT = "nan_output"
    SHAPE_VARIES = "shape_varies"
    MEMORY_GROWS = "memory_grows"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    TAIL_SLOWER = "tail_slower"
    SLOT_EFFECT = "slot_effect"
    SIDES_DISTURB = "sides_disturb"
    WALL_DISAGREES = "wall_disagrees"


class Caveat(Record, frozen=True, kw_only=True):
    """One reservation."""

    code: Annotated[str, doc("stable, snake_case")]
    message: Annotated[str, doc("what was seen, with its figure")]
    advice: Annotated[Advice, doc("what to do next")]
    needed_s: Annotated[
        Seconds | None, doc("time to measure for that would lift it; null where more time does not")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What the user asked for, so that hints fit.

    Attributes:
        command: the command to repeat, such as `pyrometer bench model.py:work`; empty in library use.
        budget_s: the time budget in force.
        observed: whether a script was observed, which has no budget.
    """

    command: str = ""
    budget_s: Seconds = 5.0
    observed: bool = False

    def again(self, flags: str, argument: str) -> str:
        """How to repeat the measurement with a change, as a command where there is one, else as an argument."""
        return f"run `{self.command} {flags}`" if self.command else f"pass {argument}"


def caveat(code: CaveatCode, message: str, hint: str, needed_s: Seconds | None = None) -> Caveat:
    """Build a caveat; `hint` is what to do next, which changes nothing in the program's results."""
    advice = Advice(slug=code.value.replace("_", "-"), title=hint, fix_class="exact")
    return Caveat(code=code.value, message=message, advice=advice, needed_s=needed_s)
