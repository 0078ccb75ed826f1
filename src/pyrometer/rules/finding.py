"""What a rule found: the place, the evidence, what it costs, what to do, and what that should bring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pyrometer.advice import Advice, Confidence, Cost, Gain
from pyrometer.place import Place
from pyrometer.record import Record, doc

Severity = Literal["error", "warning", "info"]
"""error: results are wrong, or memory runs out; warning: it costs; info: worth knowing."""

Scope = Literal["mechanism", "symptom", "general", "measurement"]
"""What a rule knows: mechanism: what the code does, and the line to change; symptom: where the cost shows, which a mechanism
may explain; general: what takes the time, said where nothing more is known of it; measurement: how far the figures hold."""

Value = float | int | str | bool | None | Sequence[str | int | float]

NEIGHBOURS = "neighbours"
"""Ends the resource of what other processes on the machine cause: worth telling, and no fault of the program."""


class Trial(Record, frozen=True, kw_only=True):
    """What came of a rewrite that was tried: the program with it beside the program as it is, in turn."""

    outcome: Annotated[
        Literal["faster", "same", "slower", "undecided", "differs", "failed"],
        doc("differs: its results are others, beyond the tolerance; failed: it could not be run"),
    ]
    ratio: Annotated[
        float | None, doc("time of a step with the rewrite over that without; null where it was not timed")
    ] = None
    ratio_low: Annotated[float | None, doc("end of the interval of the ratio")] = None
    ratio_high: float | None = None
    max_rel: Annotated[
        float | None,
        doc("largest difference of the results, over their largest value; null where they are random"),
    ] = None
    predicted: Annotated[Gain | None, doc("what the advice promised before it was tried")] = None
    said: Annotated[str, doc("the outcome in a sentence")]


class Finding(Record, frozen=True, kw_only=True):
    """One rule's answer about one place."""

    code: Annotated[str, doc("stable, such as PYR101")]
    name: Annotated[str, doc("of the rule, such as item-in-hot-loop")]
    severity: Severity
    scope: Annotated[Scope, doc("mechanism, symptom or general: how much the rule knows of the cause")] = (
        "mechanism"
    )
    message: Annotated[str, doc("fact and figure in one sentence")]
    where: Place
    evidence: Annotated[dict[str, Value], doc("figures, units in their names")] = {}
    links: Annotated[list[str], doc("JSON pointers into the evidence, such as /trace/sync_points/0")] = []
    cost: Cost | None = None
    confidence: Confidence
    advice: Annotated[Advice, doc("what to do, for this very place, and what it should bring")]
    trial: Annotated[Trial | None, doc("what came of the rewrite, where it was tried")] = None
    resource: Annotated[
        str | None, doc("the time or memory that it accounts for; findings with the same one overlap")
    ] = None
    overlaps: Annotated[
        list[str], doc("codes of findings ranked above that count the same cost, or explain this one")
    ] = []


class Suppressed(Record, frozen=True, kw_only=True):
    """A finding that the user chose not to see, with the reason that stands beside it."""

    code: str
    name: str
    where: Place
    reason: str
    by: Annotated[str, doc("comment, configuration or baseline")]
