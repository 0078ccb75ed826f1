"""What the hardware still leaves where a goal was missed: the roofline of the whole step.

A step cannot be shorter than its arithmetic at the measured peak of matrix products, nor than moving its parameters, inputs
and outputs once at the measured bandwidth. Williams, Waterman and Patterson, Roofline (2009); FLOP as `torch.utils.flop_counter` counts them.
"""

from __future__ import annotations

from typing import Annotated, Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from pyrometer.bench.fresh import run_fresh
from pyrometer.errors import PyrometerError
from pyrometer.hardware.peak_search import measure_peaks
from pyrometer.hardware.peaks import Peak, Peaks
from pyrometer.quantity import Bytes, Seconds, format_percent, significant
from pyrometer.record import Record, doc
from pyrometer.tuning.trials.protocol import Source
from pyrometer.tuning.trials.sending import received
from pyrometer.workload.inference import Inference
from pyrometer.workload.loading import load_workload

PEAKS_S: Seconds = 6.0
LATEST_S: Seconds = 180.0


class FloorRequest(Record, frozen=True, kw_only=True):
    """Of what the floor is asked."""

    source: Source
    dtype: Annotated[str, doc("that most of the arithmetic is in")]


class Floor(Record, frozen=True, kw_only=True):
    """The least time of a step on this machine."""

    flop: float
    moved_bytes: Annotated[Bytes, doc("parameters, inputs and outputs, each once")]
    arithmetic_s: Annotated[Seconds | None, doc("at the measured peak; null where it is not known")] = None
    transfer_s: Annotated[Seconds | None, doc("at the measured bandwidth")] = None

    @property
    def least_s(self) -> Seconds | None:
        """The longer of the two."""
        return max((part for part in (self.arithmetic_s, self.transfer_s) if part is not None), default=None)


def floor_of(request: FloorRequest) -> Floor:
    """Count a step's arithmetic and bytes, and measure the machine's peaks; in the process of the caller."""
    work = (
        load_workload(request.source.spec.target())
        if request.source.spec
        else received(request.source.pickled)
    )
    with work.open() as session, FlopCounterMode(display=False) as counter:
        prepared = session.prepare()
        output = session.step(prepared)
        device = session.device
    tensors: list[Any] = pytree.tree_leaves((prepared, output))
    moved = sum(leaf.nbytes for leaf in tensors if isinstance(leaf, torch.Tensor))
    if isinstance(work, Inference):
        moved += sum(parameter.nbytes for parameter in work.model.parameters())
    peaks = measure_peaks(device, budget_s=PEAKS_S)
    flop = float(counter.get_total_flops())
    return Floor(
        flop=flop,
        moved_bytes=moved,
        arithmetic_s=_over(flop, peaks.matmul_flop_per_s.get(request.dtype)),
        transfer_s=_over(float(moved), _copy(peaks)),
    )


def _copy(peaks: Peaks) -> Peak | None:
    return max(peaks.copy_bytes_per_s.values(), key=lambda peak: peak.best, default=None)


def _over(amount: float, peak: Peak | None) -> Seconds | None:
    return amount / peak.best if peak is not None and peak.best > 0 else None


def remaining(source: Source, reached_s: Seconds, dtype: str) -> str:
    """How near to the limit a step is, in words; why that is not known where it could not be found out."""
    try:
        floor = run_fresh(floor_of, FloorRequest(source=source, dtype=dtype), timeout_s=LATEST_S)
    except PyrometerError as error:
        return f"what the hardware leaves is not known: {error}"
    if floor.least_s is None or floor.least_s <= 0:
        return f"what the hardware leaves is not known: no peak for {dtype} was measured"
    what = "arithmetic" if floor.least_s == floor.arithmetic_s else "bandwidth"
    share = min(floor.least_s / reached_s, 1.0)
    return f"at {format_percent(share, 2)} of this machine's {what} limit: {significant(1 / share, 2)}× is the most left"
