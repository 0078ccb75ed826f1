"""What a guard decided: one gate per benchmark and metric, and whether the job itself can be trusted."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.place import Place
from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc

Kind = Literal["time", "counter", "memory", "accuracy"]
GateOutcome = Literal["regressed", "improved", "unchanged", "undecided"]


class Cause(Record, frozen=True, kw_only=True):
    """One difference between the two sides that explains a gate."""

    text: Annotated[str, doc("what changed, with both figures")]
    place: Annotated[Place | None, doc("the line that it happens at, on the head's side")] = None


class Gate(Record, frozen=True, kw_only=True):
    """One metric of one benchmark, base against head."""

    benchmark: Annotated[str, doc("file, function and parameters: perf_model.py::forward[batch=8]")]
    metric: Annotated[str, doc("median_s, p95_s, peak_bytes, graph_breaks, …")]
    kind: Kind
    outcome: GateOutcome
    ratio: Annotated[Ratio | None, doc("head over base; null where the base is zero")] = None
    ci_low: Ratio | None = None
    ci_high: Ratio | None = None
    base: Annotated[float | None, doc("the base's figure, in the unit that the metric's name says")] = None
    head: float | None = None
    limit: Annotated[float | None, doc("the ratio, or for accuracy the figure, beyond which it fails")] = None
    why: list[Cause] = []


class GuardReport(Record, frozen=True, kw_only=True):
    """Every gate of one job, and the base against itself."""

    trusted: Annotated[bool, doc("whether base against base found no difference")]
    self_check: Annotated[Verdict | None, doc("base against base; null where nothing was timed")] = None
    gates: list[Gate] = []
    elapsed_s: Seconds = 0.0
