"""The gate of numerics: how far a configuration's results may be from the reference, by what its levers may change.

=============  =====================================================================================================
fix class      what passes
=============  =====================================================================================================
``exact``      the error of another order of summation: 1e-4 of the largest value of the reference in each tensor
``tolerance``  the tolerance asked for, 3e-2 by default, and a cosine of at least 0.999
``semantic``   the user's own metric; where there is none and semantic levers were allowed, a quarter of the largest
               value and a cosine of at least 0.98
=============  =====================================================================================================

Errors are told against the largest magnitude of the tensor that they are in, since next to a zero every value is infinitely wrong.
For training the losses of the first steps have to stay within a band around the reference, and the gradients of the first step
have to point the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec.structs import replace

from pyrometer.advice import FixClass
from pyrometer.record import Record, doc

FIX_CLASSES: tuple[FixClass, ...] = ("exact", "tolerance", "semantic")
EXACT = 1e-4
TOLERANCE = 3e-2
SEMANTIC = 0.25
LOWEST_COSINE: dict[FixClass, float] = {"exact": 0.9999, "tolerance": 0.999, "semantic": 0.98}


class CaseError(Record, frozen=True, kw_only=True):
    """How far results are from the reference in one case."""

    label: Annotated[str, doc("as given, zeros, large values, a single sample, loss of step 3, …")]
    max_abs: Annotated[
        float | None, doc("largest absolute difference; null where nothing can be compared")
    ] = None
    max_rel: Annotated[float | None, doc("over the largest magnitude of the reference tensor it is in")] = (
        None
    )
    cosine: Annotated[float | None, doc("lowest cosine between a tensor and its reference")] = None
    mismatch: Annotated[
        str | None, doc("what cannot be compared by numbers: structure, shape, NaN, an exception")
    ] = None
    different: Annotated[
        str | None, doc("how many whole numbers differ, such as chosen classes; null where all are the same")
    ] = None
    skipped: Annotated[str | None, doc("why this case says nothing; null where it counts")] = None
    excuse: Annotated[
        str | None, doc("why an error that is larger than is legal says nothing; null where it counts")
    ] = None


class Numerics(Record, frozen=True, kw_only=True):
    """What the gate found."""

    cases: list[CaseError] = []
    tolerance: Annotated[float, doc("largest legal max_rel")] = TOLERANCE
    fix_class: FixClass = "exact"
    metric: Annotated[float | None, doc("of the user's own, of the changed model")] = None
    reference_metric: float | None = None
    refused: Annotated[str | None, doc("why it does not pass; null where it does")] = None

    @property
    def passes(self) -> bool:
        """Whether the results may stand."""
        return self.refused is None

    @property
    def counted(self) -> list[CaseError]:
        """The cases that say something."""
        return [case for case in self.cases if case.skipped is None]

    @property
    def max_abs(self) -> float | None:
        """The worst of all cases."""
        return max((case.max_abs for case in self.counted if case.max_abs is not None), default=None)

    @property
    def max_rel(self) -> float | None:
        """The worst of all cases."""
        return max((case.max_rel for case in self.counted if case.max_rel is not None), default=None)

    @property
    def cosine(self) -> float | None:
        """The worst of all cases."""
        return min((case.cosine for case in self.counted if case.cosine is not None), default=None)


class Limits(Record, frozen=True, kw_only=True):
    """What the gate lets through."""

    tolerance: Annotated[float, doc("of levers of the class tolerance")] = TOLERANCE
    metric_drop: Annotated[float, doc("how much of the user's metric may be lost, as a share of it")] = 0.01

    def largest_error(self, fix_class: FixClass) -> float:
        """The largest legal error of a class, relative to the largest value of the reference."""
        return {"exact": EXACT, "tolerance": self.tolerance, "semantic": max(SEMANTIC, self.tolerance)}[
            fix_class
        ]


def coarsest(classes: Sequence[FixClass]) -> FixClass:
    """The class of a configuration: that of its lever that may change most.

    >>> coarsest(["exact", "semantic", "tolerance"]), coarsest([])
    ('semantic', 'exact')
    """
    return max(classes, key=FIX_CLASSES.index, default="exact")


def judge(
    cases: Sequence[CaseError],
    fix_class: FixClass,
    limits: Limits,
    metrics: tuple[float, float] | None = None,
) -> Numerics:
    """Decide whether results may stand.

    Args:
        cases: the errors.
        fix_class: of the configuration.
        limits: what is legal.
        metrics: the user's metric of the reference and of the changed model; more is better. It decides in place of the
            errors where the class is `semantic`, and beside them otherwise; of whole numbers, such as chosen classes, it decides.

    >>> judge([CaseError(label="as given", max_abs=1.0, max_rel=0.5, cosine=0.9)], "tolerance", Limits()).refused
    'as given: off by 5.0e-01 of the largest value, where 3e-02 is legal'
    """
    largest = limits.largest_error(fix_class)
    has_metric = metrics is not None
    cases = [
        replace(case, skipped=case.excuse)
        if case.excuse is not None and _of_case(case, largest, fix_class, has_metric=has_metric)
        else case
        for case in cases
    ]
    refused = _of_metric(metrics, limits)
    if refused is None and (fix_class != "semantic" or metrics is None):
        reasons = (_of_case(case, largest, fix_class, has_metric=has_metric) for case in cases)
        refused = next((reason for reason in reasons if reason), None)
    if refused is None and metrics is not None and fix_class == "semantic":
        refused = next(
            (f"{case.label}: {case.mismatch}" for case in cases if case.mismatch and not case.skipped), None
        )
    reference, changed = metrics if metrics is not None else (None, None)
    return Numerics(
        cases=list(cases),
        tolerance=largest,
        fix_class=fix_class,
        metric=changed,
        reference_metric=reference,
        refused=refused,
    )


def _of_metric(metrics: tuple[float, float] | None, limits: Limits) -> str | None:
    if metrics is None:
        return None
    reference, changed = metrics
    least = reference - abs(reference) * limits.metric_drop
    if changed >= least:
        return None
    return f"the metric fell from {reference:.6g} to {changed:.6g}, where {least:.6g} is the least"


def _of_case(case: CaseError, largest: float, fix_class: FixClass, *, has_metric: bool) -> str | None:
    if case.skipped is not None:
        return None
    if case.mismatch is not None:
        return f"{case.label}: {case.mismatch}"
    if case.different is not None and not has_metric:
        return f"{case.label}: {case.different}; --metric would say whether that matters"
    if case.max_rel is not None and not case.max_rel <= largest:
        return f"{case.label}: off by {case.max_rel:.1e} of the largest value, where {largest:.0e} is legal"
    least = LOWEST_COSINE[fix_class]
    if case.cosine is not None and not case.cosine >= least:
        return f"{case.label}: the cosine to the reference is {case.cosine:.5f}, where {least} is the least"
    return None
