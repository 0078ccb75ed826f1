"""What the hardware still leaves where a goal was missed: the roofline of the whole step.

A step cannot be shorter than its arithmetic at the measured peak of matrix products, nor than moving its parameters, inputs
and outputs once at the measured bandwidth: that of memory where they do not fit into the last cache. A machine that others use, too, shows
less than it can, with several threads most of all: peaks are those of one thread times their number where that is more, and a
step that outruns them shows that they are not known. Williams, Waterman and Patterson, Roofline (2009); FLOP as `torch.utils.flop_counter` counts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from pyrometer.bench.fresh import run_fresh
from pyrometer.errors import PyrometerError
from pyrometer.hardware.cpu import read_cpu
from pyrometer.hardware.peak_search import measure_peaks
from pyrometer.hardware.peaks import Peaks
from pyrometer.quantity import Bytes, Seconds, format_percent, significant
from pyrometer.record import Record, doc
from pyrometer.tuning.trials.protocol import Source
from pyrometer.tuning.trials.sending import workload_from
from pyrometer.workload.inference import Inference

PEAKS_S: Seconds = 6.0


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
    work = workload_from(request.source)
    with work.open() as session, FlopCounterMode(display=False) as counter:
        prepared = session.prepare()
        output = session.step(prepared)
        device = session.device
    tensors: list[Any] = pytree.tree_leaves((prepared, output))
    moved = sum(leaf.nbytes for leaf in tensors if isinstance(leaf, torch.Tensor))
    if isinstance(work, Inference):
        moved += sum(parameter.nbytes for parameter in work.model.parameters())
    flop = float(counter.get_total_flops())
    rates = [_rates(peaks, scale, request.dtype, moved) for peaks, scale in _peaks(device)]
    flop_per_s, bytes_per_s = (max(column) for column in zip(*rates, strict=True))
    return Floor(
        flop=flop,
        moved_bytes=moved,
        arithmetic_s=flop / flop_per_s if flop_per_s > 0 else None,
        transfer_s=moved / bytes_per_s if bytes_per_s > 0 else None,
    )


def _peaks(device: torch.device) -> Iterator[tuple[Peaks, int]]:
    """What the machine reaches, and by how much it may be multiplied."""
    yield measure_peaks(device, budget_s=PEAKS_S / 2), 1
    threads = torch.get_num_threads()
    if device.type == "cpu" and threads > 1:
        torch.set_num_threads(1)
        try:
            yield measure_peaks(device, budget_s=PEAKS_S / 2), threads
        finally:
            torch.set_num_threads(threads)


def _rates(peaks: Peaks, scale: int, dtype: str, moved: Bytes) -> tuple[float, float]:
    """FLOP and bytes per second at the most."""
    matmul = peaks.matmul_flop_per_s.get(dtype)
    last_cache = read_cpu().l3_bytes if peaks.device == "cpu" else None
    memory = peaks.copy_bytes_per_s.get("memory")
    within = last_cache is None or moved <= last_cache or memory is None
    copies = list(peaks.copy_bytes_per_s.values()) if within else [memory]
    bytes_per_s = max((peak.best for peak in copies if peak is not None), default=0.0)
    # Memory is shared: one thread's bandwidth is no part of a whole.
    return scale * (matmul.best if matmul else 0.0), bytes_per_s * (scale if within else 1)


def remaining(source: Source, reached_s: Seconds, dtype: str, limit_s: Seconds) -> str:
    """How near to the limit a step is, in words; why that is not known where it could not be found out in time."""
    try:
        floor = run_fresh(floor_of, FloorRequest(source=source, dtype=dtype), timeout_s=limit_s)
    except PyrometerError as error:
        return f"what the hardware leaves is not known: {error}"
    if floor.least_s is None or floor.least_s <= 0:
        return f"what the hardware leaves is not known: no peak for {dtype} was measured"
    return left_of(floor, reached_s)


def left_of(floor: Floor, reached_s: Seconds) -> str:
    """How near to a limit that is known a step is."""
    if floor.least_s is None:
        return "what the hardware leaves is not known"
    what = "arithmetic" if floor.least_s == floor.arithmetic_s else "bandwidth"
    share = floor.least_s / reached_s
    if share > 1:
        return (
            f"what the hardware leaves is not known: the step is {significant(share, 2)}× faster than the {what} that was "
            "measured just now, so that other programs must have taken part of the machine"
        )
    return f"at {format_percent(share, 2)} of this machine's {what} limit: {significant(1 / share, 2)}× is the most left"
