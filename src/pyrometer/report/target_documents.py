"""What verbs print with `--json` of one target on one machine: what was tried, measured or predicted."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.bench.calibration import Calibration
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.matrix.record import Matrix
from pyrometer.bench.measurement import Measurement
from pyrometer.document import Document
from pyrometer.hardware.record import Environment
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import doc
from pyrometer.scaling.record import Basis, ScaleCheck, ScalePrediction, Scaling
from pyrometer.tuning.outcome import Goal, LeverOutcome, RecipeSummary, StageReport, Tuning
from pyrometer.tuning.recipe.signature import Signature
from pyrometer.tuning.trials.gate import Numerics


class TargetDocument(Document, frozen=True, kw_only=True):
    """The head of a document about one target: what was run, and on which machine."""

    target: str
    environment: Environment


class MatrixDocument(TargetDocument, frozen=True, kw_only=True):
    """`pyrometer bench TARGET --matrix … --json`."""

    matrix: Matrix


class TuneDocument(TargetDocument, frozen=True, kw_only=True):
    """`pyrometer tune TARGET --json`."""

    kind: Literal["inference", "training"]
    baseline: Measurement
    baseline_peak_bytes: Bytes | None = None
    recipe: RecipeSummary
    final: Annotated[
        Verdict | None, doc("the recipe against the baseline, in fresh processes on fresh inputs")
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

    @classmethod
    def of(cls, tuning: Tuning) -> TuneDocument:
        """The document of a search."""
        return cls(**{name: getattr(tuning, name) for name in Tuning.__struct_fields__})


class ScaleDocument(TargetDocument, frozen=True, kw_only=True):
    """`pyrometer scale --json`."""

    predictions: list[ScalePrediction]
    assumptions: Annotated[list[str], doc("what must hold for the predictions to hold")]
    checks: Annotated[list[ScaleCheck], doc("predictions beside real runs on this machine")]
    basis: Basis

    @classmethod
    def of(cls, target: str, scaling: Scaling, environment: Environment) -> ScaleDocument:
        """What was found of a target."""
        return cls(
            target=target,
            environment=environment,
            predictions=scaling.predictions,
            assumptions=scaling.assumptions,
            checks=scaling.checks,
            basis=scaling.basis,
        )


class CalibrationDocument(TargetDocument, frozen=True, kw_only=True):
    """`pyrometer calibrate --json`."""

    target: Annotated[str, doc("what was compared with itself")]
    calibration: Calibration
