"""How a script under observation ended."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc


class ScriptOutcome(Record, frozen=True, kw_only=True):
    """How a script under observation ended."""

    argv: list[str]
    exit_code: Annotated[int, doc("exit status of the script; negative is the signal that ended it")]
    wall_s: Annotated[Seconds, doc("from starting the interpreter to its end")]
    import_s: Annotated[Seconds | None, doc("from the start of the script until torch was imported")] = None
    outside_steps_s: Annotated[Seconds, doc("imports, set-up, validation, checkpoints")] = 0.0
    evaluation_s: Annotated[
        Seconds,
        doc("evaluations between the first step and the last, where only some steps have one before them"),
    ] = 0.0
    evaluation_share: Annotated[Ratio, doc("of the time that they and the steps take together")] = 0.0
    num_steps: int
    steps_from: Annotated[
        str, doc("what a step was taken to be: optimizer steps, loader iterations or module calls")
    ]
    overhead_share: Annotated[float | None, doc("estimated share of a step that the observation cost")] = None
    notes: Annotated[list[str], doc("what could not be observed, and why")] = []
