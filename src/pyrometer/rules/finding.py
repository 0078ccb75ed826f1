"""What a rule found: the place, the evidence, what it costs, what to do, and what that should bring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc

Severity = Literal["error", "warning", "info"]
"""error: results are wrong, or memory runs out; warning: it costs; info: worth knowing."""

FixClass = Literal["exact", "tolerance", "semantic"]
"""What the fix may change in the results: nothing, digits within a tolerance, or what is computed."""

Confidence = Literal["high", "medium", "low"]
"""high: measured or certain from the code; medium: inferred; low: a hint to look."""

Value = float | int | str | bool | None | Sequence[str | int | float]


class Place(Record, frozen=True, kw_only=True):
    """Where in the program; what is not known is null."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    module: Annotated[str | None, doc("path of the nn.Module")] = None
    op: Annotated[str | None, doc("operator or kernel")] = None
    rank: int | None = None


class Cost(Record, frozen=True, kw_only=True):
    """What it costs now; at least one of the three is known, or the cost is null."""

    seconds_per_step: Seconds | None = None
    bytes: Annotated[Bytes | None, doc("of peak memory, or of what stays")] = None
    share: Annotated[float | None, doc("of the step's time, 0 to 1")] = None
    method: Annotated[str, doc("how it was estimated")]


class Gain(Record, frozen=True, kw_only=True):
    """What the advice should bring; ratios are new over old time per step, below 1 is faster."""

    ratio_low: Annotated[float | None, doc("best case; null where only memory is predicted")] = None
    ratio_high: Annotated[float | None, doc("worst case")] = None
    saves_bytes: Annotated[Bytes | None, doc("of the peak")] = None
    method: Annotated[str, doc("what-if, roofline, removal, measured, rehearsed, model or bound")]


class Finding(Record, frozen=True, kw_only=True):
    """One rule's answer about one place."""

    code: Annotated[str, doc("stable, such as PYR101")]
    name: Annotated[str, doc("of the rule, such as item-in-hot-loop")]
    severity: Severity
    message: Annotated[str, doc("fact and figure in one sentence")]
    where: Place
    evidence: Annotated[dict[str, Value], doc("figures, units in their names")] = {}
    links: Annotated[list[str], doc("JSON pointers into the evidence, such as /trace/sync_points/0")] = []
    cost: Cost | None = None
    predicted_gain: Gain | None = None
    fix_class: FixClass
    lever: Annotated[str | None, doc("change that tuning can try; null where it is for a person")] = None
    confidence: Confidence
    advice: Annotated[str, doc("what to do, in one or two sentences, for this very place")]
    rewrite: Annotated[str | None, doc("code or setting to write; null where there is none")] = None
    resource: Annotated[
        str | None, doc("the time or memory that it accounts for; findings with the same one overlap")
    ] = None
    overlaps: Annotated[list[str], doc("codes of findings ranked above that count the same cost")] = []


class Suppressed(Record, frozen=True, kw_only=True):
    """A finding that the user chose not to see, with the reason that stands beside it."""

    code: str
    name: str
    where: Place
    reason: str
    by: Annotated[str, doc("comment, configuration or baseline")]
