"""What verbs print with `--json` of one target on one machine: what was tried, measured or predicted."""

from __future__ import annotations

from typing import Annotated

from pyrometer.bench.calibration import Calibration
from pyrometer.bench.matrix.record import Matrix
from pyrometer.document import Document
from pyrometer.hardware.record import Environment
from pyrometer.record import doc
from pyrometer.scaling.record import Basis, ScaleCheck, ScalePrediction, Scaling


class TargetDocument(Document, frozen=True, kw_only=True):
    """The head of a document about one target: what was run, and on which machine."""

    target: str
    environment: Environment


class MatrixDocument(TargetDocument, frozen=True, kw_only=True):
    """`pyrometer bench TARGET --matrix … --json`."""

    matrix: Matrix


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
