"""What a search found: every lever with its figures, the recipe, and whether the goals were reached."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pyrometer.advice import FixClass
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement
from pyrometer.document import Document
from pyrometer.hardware.record import Environment
from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.record import Record, doc
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.stages import Stage
from pyrometer.tuning.recipe.signature import Signature
from pyrometer.tuning.trials.gate import Numerics

LeverResult = Literal[
    "kept",
    "no gain",
    "slower",
    "wrong numbers",
    "not applied",
    "not applicable",
    "failed",
    "undecided",
    "untried",
]


class Figures(Record, frozen=True, kw_only=True):
    """Measured against the configuration that was best at that moment; errors against the baseline."""

    ratio: Annotated[Ratio | None, doc("time with over time without; below 1 is faster")] = None
    ci_low: Ratio | None = None
    ci_high: Ratio | None = None
    confidence: float | None = None
    max_abs_error: Annotated[float | None, doc("against the baseline, over all cases")] = None
    max_rel_error: Annotated[float | None, doc("over the largest magnitude of the tensor it is in")] = None
    cosine: Annotated[float | None, doc("lowest, between a tensor and its reference")] = None
    price_s: Annotated[
        Seconds | None, doc("to apply it and for the first call: export, quantisation, compilation")
    ] = None


def figures_of(record: Figures | None) -> dict[str, Any]:
    """The figures of a record, as arguments for another; none of none.

    >>> figures_of(Figures(ratio=0.5))["ratio"], figures_of(None)
    (0.5, {})
    """
    return {} if record is None else {name: getattr(record, name) for name in Figures.__struct_fields__}


class LeverOutcome(Figures, frozen=True, kw_only=True):
    """What became of one lever, tried against the best configuration at that moment."""

    name: Annotated[str, doc("the lever")]
    parameters: dict[str, Any] = {}
    outcome: LeverResult
    stage: Stage = "basic"
    fix_class: FixClass = "exact"
    against: Annotated[list[LeverChoice], doc("the configuration that it was compared with")] = []
    configuration: Annotated[list[LeverChoice], doc("the configuration that was tried")] = []
    num_blocks: int = 0
    metric: Annotated[float | None, doc("of the user's own")] = None
    artefact_bytes: Annotated[Bytes, doc("on disk")] = 0
    peak_bytes: Annotated[Bytes | None, doc("of memory, of the process or on the device")] = None
    reason: Annotated[str, doc("why it was not kept, or what limits it")] = ""
    predicted_low: Annotated[Ratio | None, doc("what findings predicted, best case")] = None
    predicted_high: Ratio | None = None
    learned: Annotated[
        Ratio,
        doc("by what the predicted range was moved, from what earlier searches on this machine measured"),
    ] = 1.0
    rules: Annotated[list[str], doc("codes of the findings that advise it")] = []
    elapsed_s: Seconds = 0.0
    fixed_shapes: bool = False

    @property
    def label(self) -> str:
        """The lever with its parameters."""
        return LeverChoice(lever=self.name, parameters=self.parameters).label


class Goal(Record, frozen=True, kw_only=True):
    """One target of a search."""

    name: Annotated[str, doc("latency or memory")]
    goal: Annotated[float, doc("seconds, or bytes")]
    reached: Annotated[float | None, doc("in the same unit; null where it was not measured")]
    met: bool | None
    left: Annotated[str, doc("where it was missed: what the hardware's limit still leaves")] = ""


class StageReport(Record, frozen=True, kw_only=True):
    """What a stage of the search brought, validated at its end."""

    stage: Stage
    levers: Annotated[list[str], doc("kept in this stage")]
    ratio: Annotated[
        Ratio | None, doc("time after it over time of the baseline; null where nothing changed")
    ] = None
    numerics: Numerics | None = None
    elapsed_s: Seconds = 0.0


class RecipeSummary(Record, frozen=True, kw_only=True):
    """Where the recipe is, and what is in it."""

    path: Annotated[str | None, doc("null where nothing was written")]
    levers: list[LeverChoice]
    num_ranks: Annotated[
        int | None, doc("of the script that it is for; null for a workload of one process")
    ] = None


class Tuning(Document, frozen=True, kw_only=True):
    """A search from beginning to end: `pyrometer tune TARGET --json`."""

    target: str
    environment: Environment
    kind: Literal["inference", "training"]
    baseline: Measurement
    baseline_peak_bytes: Bytes | None = None
    recipe: RecipeSummary
    final: Annotated[
        Verdict | None,
        doc("the recipe against the baseline, in fresh processes on fresh inputs; null without a lever"),
    ] = None
    applied: Annotated[
        Measurement | None, doc("of a recipe that was applied and not proved again: its steps by themselves")
    ] = None
    numerics: Annotated[Numerics | None, doc("of the whole recipe")] = None
    levers: list[LeverOutcome]
    stages: list[StageReport] = []
    targets: list[Goal] = []
    signature: Annotated[Signature | None, doc("of the model; null where an older version tuned it")] = None
    elapsed_s: Seconds
    interrupted: bool = False
    notes: list[str] = []

    @property
    def kept(self) -> list[LeverOutcome]:
        """The outcomes behind the levers of the recipe."""
        wanted = {choice.label for choice in self.recipe.levers}
        return [outcome for outcome in self.levers if outcome.outcome == "kept" and outcome.label in wanted]
