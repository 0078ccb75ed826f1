"""A batch in the shadow: what another version says to the same requests, held against what they were answered."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from pyrometer.bench.matrix.numerics import numeric_error
from pyrometer.quantity import Seconds
from pyrometer.serving.running.program import Program, Rows, Served, answered
from pyrometer.tuning.shapes.axes import Sizes
from pyrometer.tuning.trials.gate import LOWEST_COSINE


class Compared(NamedTuple):
    """What came of a batch in the shadow.

    Attributes:
        version: that ran.
        took_s: in its model.
        failure: of a request that it failed on and the other version did not.
        has_nonfinite: whether its outputs hold NaN or infinities that those of the other version do not.
        num: requests that both versions answered.
        num_differ: those whose outputs differ by more than the gate of numerics lets through.
        error: the largest difference, relative to the largest value; infinite where shapes or NaN differ, None where nothing was compared.
    """

    version: str = ""
    took_s: Seconds = 0.0
    failure: str | None = None
    has_nonfinite: bool = False
    num: int = 0
    num_differ: int = 0
    error: float | None = None


def compare(
    program: Program, requests: list[Rows], sizes: Sizes, theirs: Sequence[Served], tolerance: float
) -> Compared:
    """Run requests in a version that answers nobody, and compare; in its thread."""
    began_s = time.perf_counter()
    ours = answered(program, requests, sizes)
    took_s = time.perf_counter() - began_s
    pairs = list(zip(ours, theirs, strict=True))
    failures = [own.failure for own, other in pairs if own.failure is not None and other.failure is None]
    both = [(own, other) for own, other in pairs if own.failure is None and other.failure is None]
    found = [_difference(program, own, other, tolerance) for own, other in both]
    return Compared(
        version=program.version,
        took_s=took_s,
        failure=failures[0] if failures else None,
        has_nonfinite=any(own.nonfinite and not other.nonfinite for own, other in both),
        num=len(found),
        num_differ=sum(not agrees for agrees, _ in found),
        error=max((error for _, error in found), default=None),
    )


def _difference(program: Program, own: Served, other: Served, tolerance: float) -> tuple[bool, float]:
    """Whether two answers agree, by the gate of numerics, and how far they are apart."""
    specs = program.signature.outputs
    values, expected = (
        [spec.to_torch(array) for spec, array in zip(specs, one.outputs, strict=False)]
        for one in (own, other)
    )
    found = numeric_error(values, expected, tolerance)
    if found.mismatch is not None:
        return False, float("inf")
    return found.within_tolerance and found.cosine >= LOWEST_COSINE["tolerance"], found.max_rel
