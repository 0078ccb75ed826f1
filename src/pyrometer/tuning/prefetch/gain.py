"""Whether copying ahead pays: predicted from timings, and proved by a paired comparison."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import torch

from pyrometer.bench.comparison.compare import compare
from pyrometer.bench.comparison.verdict import Verdict, sentence
from pyrometer.bench.measure import measure
from pyrometer.bench.measurement import Measurement
from pyrometer.errors import InputError
from pyrometer.quantity import Bytes, Ratio, Seconds, format_percent, format_seconds
from pyrometer.record import Record, doc
from pyrometer.tuning.prefetch.nesting import tensors_in
from pyrometer.tuning.prefetch.prefetcher import DevicePrefetcher
from pyrometer.tuning.prefetch.streams import Streams
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.inference import devices_of
from pyrometer.workload.state import preserved_rng, tensor_bytes
from pyrometer.workload.training import Training

PrefetchOutcome = Literal["faster", "no gain", "undecided", "nothing to overlap"]

_TIMINGS_SHARE = 0.2
_WORTH_TRYING = 0.01


class Overlap(Record, frozen=True, kw_only=True):
    """A step with the copy before the computation, and with the copy beside it."""

    copy_s: Annotated[Seconds, doc("transfer of one step's batches to the device")]
    compute_s: Annotated[Seconds, doc("everything else that the device does in a step")]
    serial_s: Annotated[Seconds, doc("copy_s + compute_s")]
    overlapped_s: Annotated[Seconds, doc("max(copy_s, compute_s): the best that copying ahead can do")]
    ratio: Annotated[Ratio, doc("overlapped_s over serial_s; 0.5 at best, where both take equally long")]


class PrefetchGain(Record, frozen=True, kw_only=True):
    """What copying batches ahead brings in a training workload."""

    device: str
    outcome: Annotated[PrefetchOutcome, doc("faster is proved; only then it is worth keeping")]
    keep: Annotated[bool, doc("whether to use the prefetcher")]
    reason: Annotated[str, doc("one sentence, with figures")]
    use: Annotated[str | None, doc("the code to write; null where it is not worth keeping")] = None
    depth: Annotated[int, doc("batches copied ahead")] = 2
    pin: Annotated[bool, doc("whether a thread copies to page-locked memory first")] = False
    extra_bytes: Annotated[
        Bytes | None, doc("device memory for the batches that lie ready; null where not tried")
    ] = None
    predicted: Annotated[Overlap | None, doc("from the phases of a step; null where not measured")] = None
    verdict: Annotated[Verdict | None, doc("with over without; null where there was nothing to compare")] = (
        None
    )


def predict_overlap(copy_s: Seconds, compute_s: Seconds) -> Overlap:
    """What overlapping can bring: the longer of copy and computation instead of their sum.

    Raises:
        InputError: a time is negative.

    >>> predict_overlap(copy_s=0.002, compute_s=0.008).ratio
    0.8
    >>> predict_overlap(copy_s=0.0, compute_s=0.0).ratio  # nothing to gain
    1.0
    """
    if copy_s < 0 or compute_s < 0:
        raise InputError(f"copy_s, compute_s: got {copy_s}, {compute_s}; times must not be negative")
    serial_s, overlapped_s = copy_s + compute_s, max(copy_s, compute_s)
    return Overlap(
        copy_s=copy_s,
        compute_s=compute_s,
        serial_s=serial_s,
        overlapped_s=overlapped_s,
        ratio=overlapped_s / serial_s if serial_s else 1.0,
    )


def try_prefetch(
    work: Training,
    *,
    budget_s: Seconds = 30.0,
    depth: int = 2,
    pin: bool = False,
    streams: Streams | None = None,
) -> PrefetchGain:
    """Find out whether a `DevicePrefetcher` makes a training workload faster.

    On the CPU there is nothing to overlap, and that is said at once. On an accelerator a fifth of the budget goes to the phases of
    a step; where copies take less than 1 % of it nothing more is done. Else the same work is compared with and without,
    in paired blocks. State is restored as `compare` does; the batches are iterated as the workload does.

    Args:
        work: its batches come without a prefetcher.
        budget_s: no block is begun after so many seconds; first calls do not count.
        depth: batches that are copied ahead.
        pin: copy pageable tensors to page-locked memory on a thread.
        streams: of another kind of device, or of a simulated one; then it is compared in any case.

    Raises:
        InputError: the budget is not positive, the depth below 1, or the batches come from a prefetcher already.
        UserProgramError: a step raised.

    >>> model = torch.nn.Linear(2, 1)
    >>> work = Training(model, torch.nn.MSELoss(), torch.optim.SGD(model.parameters(), 0.1), [])
    >>> try_prefetch(work).outcome
    'nothing to overlap'
    """
    if not budget_s > 0:
        raise InputError(f"budget: got {budget_s} s; it must be positive, for example 30 s")
    if isinstance(work.batches, DevicePrefetcher):
        raise InputError("batches: they come from a DevicePrefetcher; give the loader that it was made from")
    device = next(iter(devices_of(work.parts.model)), torch.device("cpu"))
    if streams is None and device.type == "cpu":
        return _nothing(device, "on the CPU a batch is not copied, so there is nothing to overlap")
    predicted: Overlap | None = None
    if streams is None:
        measured = measure(work, budget_s=budget_s * _TIMINGS_SHARE)
        # Without phases (the first call took the time) it is not predicted, but still compared.
        predicted = overlap_of(measured) if measured.phases else None
        if predicted is not None and 1 - predicted.ratio < _WORTH_TRYING:
            return _nothing(device, _small(predicted), predicted)
    candidate = prefetched(work, depth=depth, pin=pin, streams=streams)
    verdict = compare(work, candidate, budget_s=budget_s * (1 - _TIMINGS_SHARE))
    return conclude_gain(
        verdict,
        device=device,
        depth=depth,
        pin=pin,
        predicted=predicted,
        batch_bytes=_batch_bytes(work),
    )


def prefetched(
    work: Training, *, depth: int = 2, pin: bool = False, streams: Streams | None = None
) -> Training:
    """The same work with its batches copied ahead; the user's loader is left alone.

    Raises:
        InputError: the depth is below 1, or the device cannot be used here.
    """
    device = next(iter(devices_of(work.parts.model)), torch.device("cpu"))
    other = copy.copy(work)
    other.batches = DevicePrefetcher(_Endless(work), device, depth=depth, pin=pin, streams=streams)
    other.name = f"{work.name}, prefetched"
    return other


def overlap_of(measurement: Measurement) -> Overlap:
    """What overlapping can bring to a measured training step, by its phases.

    Raises:
        InputError: the measurement has no phases.
    """
    phases = {phase.name: phase.mean_s for phase in measurement.phases}
    if not phases:
        raise InputError("phases: the measurement has none; give it a larger budget")
    compute_s = sum(phases.get(name, 0.0) for name in ("forward", "backward", "optimizer"))
    return predict_overlap(phases.get("h2d", 0.0), compute_s)


def conclude_gain(
    verdict: Verdict,
    *,
    device: torch.device,
    depth: int,
    pin: bool,
    predicted: Overlap | None = None,
    batch_bytes: Bytes | None = None,
) -> PrefetchGain:
    """The prefetcher is kept where it was proved to be faster, and only there."""
    outcome: PrefetchOutcome = "no gain"
    if verdict.outcome in {"faster", "undecided"}:
        outcome = verdict.outcome
    keep = outcome == "faster"
    pinning = ", pin=True" if pin else ""
    return PrefetchGain(
        device=str(device),
        outcome=outcome,
        keep=keep,
        reason=f"with batches copied ahead: {sentence(verdict)}",
        use=f'DevicePrefetcher(loader, "{device}", depth={depth}{pinning})' if keep else None,
        depth=depth,
        pin=pin,
        extra_bytes=None if batch_bytes is None else batch_bytes * depth,
        predicted=predicted,
        verdict=verdict,
    )


def _nothing(device: torch.device, reason: str, predicted: Overlap | None = None) -> PrefetchGain:
    return PrefetchGain(
        device=str(device), outcome="nothing to overlap", keep=False, reason=reason, predicted=predicted
    )


def _small(predicted: Overlap) -> str:
    return (
        f"copies take {format_seconds(predicted.copy_s)} beside {format_seconds(predicted.compute_s)} of computation; at best "
        f"{format_percent(1 - predicted.ratio, 2)} could be saved"
    )


def _batch_bytes(work: Training) -> Bytes:
    stream = BatchStream(work.batches)
    try:
        with preserved_rng():
            return tensor_bytes(tensors_in(stream.next())[0])
    finally:
        stream.close()


class _Endless:
    """A workload's batches as the workload iterates them: without disturbing the loader, and started anew at the end."""

    def __init__(self, work: Training) -> None:
        self._batches = work.batches

    def __iter__(self) -> Iterator[Any]:
        stream = BatchStream(self._batches)
        try:
            while True:
                yield stream.next()
        finally:
            stream.close()
