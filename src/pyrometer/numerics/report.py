"""`NumericsReport`: what a few steps showed of the numbers that a program computes."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.place import Place
from pyrometer.record import Record, doc

Trend = Literal["growing", "falling", "steady", "unknown"]


class NonFinite(Record, frozen=True, kw_only=True):
    """The first value of a step that is NaN or infinite, followed back to where it arose."""

    step: Annotated[int, doc("from 0")]
    kind: Annotated[Literal["nan", "inf"], doc("of the value that was found")]
    seen_in: Annotated[
        str | None, doc("first module whose output holds it; null where only the result of the step does")
    ]
    in_result: Annotated[
        bool, doc("whether the loss, or the output of the model, is NaN or infinite in that step")
    ]
    source: Annotated[
        Literal["operator", "input", "parameter", "unknown"],
        doc("operator: its inputs were all finite, or only infinite where the value is NaN"),
    ]
    source_name: Annotated[str | None, doc("of the input or parameter")] = None
    origin: Annotated[Place, doc("where it arose; of a backward operator, the line of its forward one")] = (
        Place()
    )
    overflow: Annotated[
        Place | None, doc("where the infinity arose that the NaN was made of; null without one")
    ] = None


class NonFiniteGradient(Record, frozen=True, kw_only=True):
    """A parameter whose gradient was NaN or infinite."""

    parameter: str
    step: Annotated[int, doc("the first in which it was")]
    kind: Literal["nan", "inf"]
    num_steps: Annotated[int, doc("in how many of the steps")] = 1
    all_skipped: Annotated[bool, doc("whether a GradScaler skipped each of these steps")] = False
    origin: Annotated[
        NonFinite | None, doc("where it arose; only for the first one in the backward pass")
    ] = None


class LayerGradient(Record, frozen=True, kw_only=True):
    """The gradients of one module's own parameters."""

    module: str
    num_parameters: int
    rms: Annotated[
        list[float | None], doc("root mean square per step; null where it is not finite, or there is none")
    ]


class Gradients(Record, frozen=True, kw_only=True):
    """Gradients just before the optimizer's step, without the scale of a GradScaler."""

    norms: Annotated[list[float | None], doc("over all parameters, per step; null where not finite")]
    weight_norm: Annotated[
        float | None, doc("of the parameters that have gradients, after the last step")
    ] = None
    trend: Annotated[
        Trend, doc("of the norms; steady unless it goes one way in every step, and tenfold over all")
    ] = "unknown"
    growth: Annotated[float | None, doc("last norm over first")] = None
    layers: Annotated[list[LayerGradient], doc("in the order in which their modules first ran")] = []
    depth_ratio: Annotated[
        float | None,
        doc(
            "median over steps of the mean rms in the last fifth of the layers' weights over that of the first fifth; above 1 "
            "they vanish on the way back, below 1 they explode; null with fewer than five layers"
        ),
    ] = None
    non_finite: Annotated[list[NonFiniteGradient], doc("in the order of the backward pass")] = []
    never: Annotated[list[str], doc("parameters to be trained that got no gradient in any step")] = []
    sometimes: Annotated[list[str], doc("parameters that got one in some of the steps only")] = []


class Scaling(Record, frozen=True, kw_only=True):
    """A GradScaler at work."""

    scales: Annotated[list[float], doc("before each step")]
    final_scale: float
    skipped: Annotated[list[int], doc("steps that it skipped because a gradient was not finite")] = []


class PrecisionUse(Record, frozen=True, kw_only=True):
    """A computation that loses in low precision, done in low precision."""

    kind: Annotated[
        Literal["loss", "softmax", "normalisation", "statistics", "hand-written normalisation"],
        doc(
            "softmax and normalisation: torch's own operators, which compute in float32 within and round the result; "
            "statistics: running mean and variance kept in it; hand-written: squares and their mean as separate operators"
        ),
    ]
    dtype: Annotated[str, doc("of the coarsest input")]
    calls: Annotated[int, doc("per step")]
    where: Place


class IntegerCast(Record, frozen=True, kw_only=True):
    """Whole numbers (labels, indices, positions) that were made floating-point numbers."""

    name: Annotated[str | None, doc("of the input; null where it is none")]
    from_dtype: str
    to_dtype: str
    num_values: int
    num_changed: Annotated[int, doc("values that are another number afterwards")]
    largest: Annotated[int, doc("largest magnitude")]
    where: Place


class ValueStatistics(Record, frozen=True, kw_only=True):
    """The finite values of one tensor, of a sample of it where it is large."""

    num_values: int
    mean: float
    std: float
    quantiles: Annotated[list[float], doc("at 0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99 and 1")]
    share_finite: float


class StepOutput(Record, frozen=True, kw_only=True):
    """What one step returned: the loss of a training, the outputs of an inference."""

    step: int
    values: Annotated[ValueStatistics | None, doc("null where it holds no number, or none that is finite")]


class ModuleOutput(Record, frozen=True, kw_only=True):
    """The output of one module without children, in its first call of a step."""

    module: str
    type_name: str
    dtype: str
    first: Annotated[ValueStatistics | None, doc("in the first step")] = None
    last: Annotated[ValueStatistics | None, doc("in the last step")] = None


class Activation(Record, frozen=True, kw_only=True):
    """What an activation function lets through, over all steps."""

    function: Annotated[str, doc("relu, sigmoid or tanh")]
    where: Place
    saturated: Annotated[
        float | None,
        doc("share of values within 1 % of an end of the range; null for functions without two ends"),
    ] = None
    zeros: Annotated[float | None, doc("share of values that are 0; null but for relu")] = None
    dead: Annotated[
        float | None,
        doc("share of units (columns, or channels) that were 0 for every input; null but for relu"),
    ] = None


class OutputShift(Record, frozen=True, kw_only=True):
    """An output beside that of a reference on the same inputs: value by value, and as distributions."""

    reference: Annotated[str, doc("what it is compared with, in words")]
    changed: str
    max_abs: float
    max_rel: Annotated[float, doc("largest difference over the largest magnitude of the reference's tensor")]
    cosine: float
    tolerance: Annotated[float, doc("largest legal max_rel for the dtype")]
    within_tolerance: bool
    mismatch: Annotated[str | None, doc("structure, shape or NaN that differ; null otherwise")] = None
    quantile_shift: Annotated[
        float | None,
        doc(
            "largest difference of a quantile (1 to 99 %), in standard deviations of the reference; null without values"
        ),
    ] = None
    distribution_distance: Annotated[
        float | None, doc("largest difference of the cumulative distributions (Kolmogorov-Smirnov), 0 to 1")
    ] = None
    same_top: Annotated[
        float | None,
        doc("share of rows whose largest entry is at the same place; null where there are no rows"),
    ] = None


class NumericsReport(Record, frozen=True, kw_only=True):
    """What a few steps showed of a program's numbers."""

    name: str
    kind: Literal["inference", "training", "call"]
    device: str
    num_steps: int
    non_finite: Annotated[NonFinite | None, doc("the first of all steps; null where all was finite")] = None
    num_non_finite_steps: Annotated[int, doc("steps whose result was NaN or infinite")] = 0
    gradients: Annotated[Gradients | None, doc("null without a backward pass")] = None
    scaling: Annotated[Scaling | None, doc("null without a GradScaler")] = None
    precision: Annotated[list[PrecisionUse], doc("most calls first")] = []
    casts: Annotated[
        list[IntegerCast], doc("of inputs, and of any whole numbers that did not survive; most changed first")
    ] = []
    outputs: Annotated[list[StepOutput], doc("per step")] = []
    modules: Annotated[list[ModuleOutput], doc("in the order in which they first ran")] = []
    activations: list[Activation] = []
    shift: Annotated[
        OutputShift | None,
        doc("against the same in float32; null where it computes in float32 anyway, or has random outputs"),
    ] = None
    notes: Annotated[list[str], doc("what could not be observed, and why")] = []
