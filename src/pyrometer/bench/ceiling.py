"""What a step would take without one of its places: an upper bound of what any fix there can bring, by experiment."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.place import Place
from pyrometer.quantity import Ratio
from pyrometer.record import Record, doc


class Ceiling(Record, frozen=True, kw_only=True):
    """A step with one place cut out, beside the step as it is.

    While it is cut out, the place returns what it returned before; all else runs. No change to the place alone can make the
    step faster than that.
    """

    where: Annotated[Place, doc("of what was cut out: its definition; `function` or `module` names it")]
    what: Literal["function", "module", "loader"]
    last_line: Annotated[int | None, doc("of its definition; null where that is not known")] = None
    calls_per_step: float
    ratio: Annotated[Ratio, doc("step without it over step with it, of paired runs; below 1 is faster")]
    ratio_low: Annotated[Ratio, doc("lower end of its interval")]
    ratio_high: Annotated[Ratio, doc("upper end of its interval")]
    pairs: Annotated[int, doc("of steps that were compared")]
    same_inputs: Annotated[bool, doc("it was given the same values in each step that was looked at")]
    same_results: Annotated[bool, doc("it returned the same values in each step that was looked at")]
