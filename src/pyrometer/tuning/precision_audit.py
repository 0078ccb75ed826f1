"""Mixed precision beside float32: what it computes otherwise, how often it overflows, how fast it is and what memory it takes."""

from __future__ import annotations

import contextlib
import copy
import math
from collections import Counter
from typing import Annotated, Any, Literal, TypeAlias

import torch
from torch.utils import _pytree as pytree

from pyrometer.bench.clock import Clock
from pyrometer.bench.comparison.compare import compare
from pyrometer.bench.comparison.verdict import Verdict, sentence
from pyrometer.errors import InputError
from pyrometer.loading.figures import require_count
from pyrometer.numerics.precision import LOSSES, NORMALISATIONS, SOFTMAXES
from pyrometer.numerics.private.dispatch import DispatchMode, name_of
from pyrometer.quantity import Bytes, Seconds, format_bytes, format_percent
from pyrometer.record import Record, doc
from pyrometer.tuning.batching.trial import OutOfMemory, run_for_memory
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.failure import user_code
from pyrometer.workload.inference import home_of
from pyrometer.workload.training import Training
from pyrometer.workload.variant import AUTOCAST_DTYPES

LOSS_BAND = 0.05
"""A mean difference of the losses above this share of the loss is told as a problem."""

Kind: TypeAlias = Literal["loss", "softmax", "normalisation"]
_KINDS: dict[Kind, frozenset[str]] = {
    "loss": LOSSES,
    "softmax": SOFTMAXES,
    "normalisation": NORMALISATIONS,
}


class ResultDtype(Record, frozen=True, kw_only=True):
    """The dtype in which an operator gave its result under autocast."""

    kind: Kind
    op: str
    dtype: str
    calls: Annotated[int, doc("per step")]


class LabelCast(Record, frozen=True, kw_only=True):
    """Labels, or other whole numbers of the batch, that the step made floating-point numbers, or rounded."""

    from_dtype: str
    to_dtype: str
    calls: Annotated[int, doc("per step")]


class AmpAudit(Record, frozen=True, kw_only=True):
    """A training step under autocast beside the same step in float32."""

    dtype: str
    device: str
    float32_losses: Annotated[
        list[float], doc("of the audited steps, from the same start, on the same batches")
    ]
    losses: Annotated[list[float], doc("of the same steps under autocast")]
    loss_difference: Annotated[
        float | None, doc("mean difference of the losses over their mean; null if not finite")
    ]
    num_overflows: Annotated[int, doc("audited steps that the scaler skipped; 0 without one")]
    overflow_frequency: Annotated[float, doc("their share; a scaler that starts high skips its first steps")]
    scale: Annotated[float | None, doc("of the scaler after the audited steps; null without")] = None
    results: Annotated[list[ResultDtype], doc("of losses, softmax and normalisation")] = []
    label_casts: list[LabelCast] = []
    speed: Annotated[Verdict | None, doc("under autocast against float32; null where not measured")] = None
    float32_peak_bytes: Annotated[Bytes | None, doc("null where not measured, or where memory ran out")] = (
        None
    )
    peak_bytes: Annotated[Bytes | None, doc("the same under autocast")] = None
    problems: Annotated[list[str], doc("what speaks against it, in sentences")] = []

    def __str__(self) -> str:
        parts = [] if self.speed is None else [sentence(self.speed)]
        if self.peak_bytes and self.float32_peak_bytes:
            parts.append(f"peak {format_bytes(self.float32_peak_bytes)} → {format_bytes(self.peak_bytes)}")
        if self.loss_difference is not None:
            steps = len(self.losses)
            parts.append(
                f"loss within {format_percent(self.loss_difference, 2)} of float32 over {steps} steps"
            )
        parts.append(f"overflows in {format_percent(self.overflow_frequency, 2)} of the steps")
        return "\n".join([f"{self.dtype} on {self.device}: {', '.join(parts)}", *self.problems])


def in_mixed_precision(work: Training, dtype: str = "bfloat16") -> Training:
    """The same training under autocast, with a scaler for float16 where it has none; nothing is run.

    Raises:
        InputError: no training, or another dtype.
    """
    if not isinstance(work, Training):
        raise InputError(f"work: got {type(work).__name__}; mixed precision is audited on pm.Training(…)")
    if dtype not in AUTOCAST_DTYPES:
        raise InputError(f"dtype: got {dtype!r}; legal are {', '.join(AUTOCAST_DTYPES)}")
    mixed = work.variant(autocast=dtype)
    if dtype == "float16" and work.parts.scaler is None:
        mixed.parts = work.parts._replace(scaler=torch.amp.GradScaler(home_of(work.parts.model).type))
    return mixed


def audit_mixed_precision(
    work: Training,
    dtype: str = "bfloat16",
    *,
    steps: int = 8,
    budget_s: Seconds | None = 10.0,
    clock: Clock | None = None,
) -> AmpAudit:
    """Run steps in float32 and under autocast from the same start on the same batches; the user's objects are as before at the end.

    Args:
        work: the training; its own autocast and scaler are taken away for the float32 side.
        dtype: of autocast.
        steps: how many are audited.
        budget_s: for the comparison of speed; peaks are taken in two steps each. `None` measures neither.
        clock: by default the right one for the device.

    Raises:
        InputError: no training, another dtype, no steps, or the workload cannot be prepared.
        UserProgramError: a step raised.
    """
    require_count("steps", steps)
    mixed = in_mixed_precision(work, dtype)
    plain = work.variant(autocast=None)
    plain.parts = work.parts._replace(scaler=None)
    batches = _taken(work, steps)
    reference = _watched(plain, batches, steps)
    seen = _watched(mixed, batches, steps)
    difference = _difference(reference.losses, seen.losses)
    speed = None if budget_s is None else compare(plain, mixed, budget_s=budget_s, clock=clock)
    results, label_casts = seen.results(steps), seen.label_casts(steps)
    return AmpAudit(
        dtype=dtype,
        device=str(home_of(work.parts.model)),
        float32_losses=reference.losses,
        losses=seen.losses,
        loss_difference=difference,
        num_overflows=seen.num_overflows,
        overflow_frequency=seen.num_overflows / steps,
        scale=seen.scale,
        results=results,
        label_casts=label_casts,
        speed=speed,
        float32_peak_bytes=None if budget_s is None else _peak(plain),
        peak_bytes=None if budget_s is None else _peak(mixed),
        problems=_problems(difference, results, label_casts, overflows_late=seen.overflows_late),
    )


def _taken(work: Training, steps: int) -> list[Any]:
    with contextlib.closing(BatchStream(work.batches)) as stream:
        return [stream.next() for _ in range(steps * work.accumulate)]


def _watched(work: Training, batches: list[Any], steps: int) -> _Watch:
    fixed = copy.copy(work)
    fixed.batches = batches
    watch = _Watch()
    with fixed.open() as session:
        session.activate()
        session.inputs_seen = watch.take
        scaler = session.parts.scaler
        for number in range(steps):
            before = scaler.get_scale() if scaler is not None else 0.0
            with user_code(f"{work.name}: step {number + 1}, audited"), watch:
                loss = session.phased_step(lambda _phase: None)
            watch.losses.append(float(loss))
            if scaler is not None:
                watch.scale = scaler.get_scale()
                watch.overflows.append(watch.scale < before)
    return watch


class _Watch(DispatchMode):
    """Sees the operators of the audited steps."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.losses: list[float] = []
        self.overflows: list[bool] = []
        self.scale: float | None = None
        self._labels: dict[int, torch.Tensor] = {}
        self._results: Counter[tuple[Kind, str, str]] = Counter()
        self._casts: Counter[tuple[str, str]] = Counter()

    def take(self, batch: Any) -> None:
        """Note the labels of a batch: its whole numbers, and the second of a pair."""
        leaves = [leaf for leaf in pytree.tree_leaves(batch) if isinstance(leaf, torch.Tensor)]
        second = batch[1] if isinstance(batch, (tuple, list)) and len(batch) == 2 else None
        labels = [leaf for leaf in leaves if _is_whole(leaf)]
        labels += [leaf for leaf in pytree.tree_leaves(second) if isinstance(leaf, torch.Tensor)]
        self._labels = {id(label): label for label in labels}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        first = pytree.tree_leaves(result)[:1]
        if first and isinstance(first[0], torch.Tensor):
            self._note(name_of(func), args, first[0])
        return result

    def _note(self, op: str, args: Any, result: torch.Tensor) -> None:
        for kind, names in _KINDS.items():
            if op in names:
                self._results[kind, op, _name(result.dtype)] += 1
        given = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if given is not None and op in {"_to_copy", "to"} and id(given) in self._labels:
            coarser = result.is_floating_point() and (
                _is_whole(given) or result.element_size() < given.element_size()
            )
            self._casts[_name(given.dtype), _name(result.dtype)] += coarser

    @property
    def num_overflows(self) -> int:
        """Steps that were skipped."""
        return sum(self.overflows)

    @property
    def overflows_late(self) -> bool:
        """Whether the scaler has yet to find its scale in the second half."""
        return any(self.overflows[len(self.overflows) // 2 :])

    def results(self, steps: int) -> list[ResultDtype]:
        """By kind and operator."""
        return [
            ResultDtype(kind=kind, op=op, dtype=dtype, calls=max(1, round(calls / steps)))
            for (kind, op, dtype), calls in sorted(self._results.items())
        ]

    def label_casts(self, steps: int) -> list[LabelCast]:
        """By dtypes."""
        return [
            LabelCast(from_dtype=source, to_dtype=target, calls=max(1, round(calls / steps)))
            for (source, target), calls in sorted(self._casts.items())
            if calls
        ]


def _is_whole(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _difference(reference: list[float], losses: list[float]) -> float | None:
    """Mean difference over the mean magnitude."""
    if not all(map(math.isfinite, (*reference, *losses))):
        return None
    apart = sum(abs(a - b) for a, b in zip(reference, losses, strict=True))
    return apart / (sum(map(abs, reference)) or 1.0)


def _peak(work: Training) -> Bytes | None:
    try:
        return run_for_memory(work, home_of(work.parts.model))
    except OutOfMemory:
        return None


def _problems(
    difference: float | None, results: list[ResultDtype], casts: list[LabelCast], *, overflows_late: bool
) -> list[str]:
    problems = []
    if difference is None:
        problems.append("losses are not finite")
    elif difference > LOSS_BAND:
        problems.append(f"losses differ by {format_percent(difference, 2)} from float32")
    if overflows_late:
        problems.append("gradients still overflow after half of the audited steps")
    low = sorted({f"{one.op} in {one.dtype}" for one in results if one.dtype in AUTOCAST_DTYPES})
    if low:
        problems.append(f"results rounded: {', '.join(low)}")
    return problems + [f"labels cast from {cast.from_dtype} to {cast.to_dtype}" for cast in casts]
