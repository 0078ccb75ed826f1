"""What the device of a trace can do, by the vendor's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.hardware.datasheet import lookup
from pyrometer.hardware.peaks import DatasheetPeaks

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport


def datasheet(trace: RankReport) -> DatasheetPeaks | None:
    """The figures of the first device that did work; None for a CPU and for a device that is not known."""
    return next((peaks for name in trace.devices if (peaks := lookup(name)) is not None), None)


def lower_precisions(peaks: DatasheetPeaks) -> dict[str, float]:
    """How many times float32's rate the lower precisions of floating point reach, TF32 first.

    >>> lower_precisions(lookup("NVIDIA A100-SXM4-80GB"))
    {'tf32': 8.0, 'bfloat16': 16.0}
    """
    base = peaks.flop_per_s.get("float32")
    if not base:
        return {}
    names = ("tf32", "bfloat16" if "bfloat16" in peaks.flop_per_s else "float16")
    return {name: peaks.flop_per_s[name] / base for name in names if peaks.flop_per_s.get(name, 0.0) > base}
