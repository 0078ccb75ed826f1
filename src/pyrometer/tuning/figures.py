"""What is measured of a lever: time, error and price; the same in the search, in the recipe and in the report."""

from __future__ import annotations

from typing import Annotated, Any

from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc


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
