"""The memory of a step, told before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from pyrometer.memory.ledger.reading import held_by_place
from pyrometer.memory.prediction.cuda import ASSUMPTIONS, CONTEXT_BYTES
from pyrometer.memory.prediction.errors import NotPredictableError
from pyrometer.memory.prediction.lifetimes import Lifetimes, sizes_of
from pyrometer.memory.prediction.rehearsal import Rehearsal, rehearse
from pyrometer.memory.prediction.settings import OptimizerChoice, Settings, settings_of
from pyrometer.memory.prediction.sizes import Dims
from pyrometer.memory.profile import PredictedMemory
from pyrometer.memory.recording.steps import record_steps
from pyrometer.quantity import Bytes
from pyrometer.settings import parse_bytes
from pyrometer.workload.workload import Workload

MOST_PLACES = 20


def predict_memory(
    work: Workload,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    dims: Dims | None = None,
    dtype: torch.dtype | str | None = None,
    optimizer: OptimizerChoice | None = None,
    checkpoint: Sequence[str] | str | None = None,
    accumulate: int | None = None,
    amp: torch.dtype | str | bool | None = None,
    device: torch.device | str | None = None,
    grad: bool | None = None,
    budget: Bytes | str | None = None,
    fallback: bool = False,
) -> PredictedMemory:
    """Say what a step will hold at its peak, and for what, without running it.

    The program's own Python runs on tensors that have shapes and storages but no data, through two steps: in the first
    the optimizer makes its state. Nothing of the user's is changed and no memory is taken. Whatever is not given is as
    the program is written.

    Args:
        work: a training or an inference.
        batch: size of the batch dimension; with accumulation, of each micro-batch.
        sequence: size of the sequence dimension.
        dims: which dimensions of which inputs these are, where that cannot be told from their shapes:
            `{"x": {0: "B", 1: "T"}}`, by parameter name, key, position, or `input` and `target` of a pair.
        dtype: of parameters, buffers and floating-point inputs.
        optimizer: a name such as `"AdamW"` or `"SGD momentum"`, a class, or a function of the parameters.
        checkpoint: paths of the modules to recompute in the backward pass, or `"every 2"` for every second block.
        accumulate: micro-batches per optimizer step.
        amp: dtype of autocast; `False` for none.
        device: `"cuda"` lays CUDA's rules of allocation over a program of the CPU.
        grad: `False` for a training's forward pass without gradients, `True` for an inference with them.
        budget: memory that it should fit into, in bytes or as a size such as `"2GiB"`.
        fallback: where the program needs values, run two real steps instead; only of the program as written.

    Raises:
        InputError: a setting is illegal or cannot be followed, or the workload cannot be copied.
        NotPredictableError: the program needs the values of tensors; it says where.
        UserProgramError: a step raised.

    >>> from torch import nn
    >>> import pyrometer as pm
    >>> work = pm.Inference(nn.Linear(256, 256), torch.randn(64, 256))
    >>> predict_memory(work).peak_bytes, predict_memory(work, batch=6400).ledger_bytes["inputs"]
    (394240, 6553600)
    """
    settings = settings_of(
        batch=batch,
        sequence=sequence,
        dims=dims,
        dtype=dtype,
        optimizer=optimizer,
        checkpoint=checkpoint,
        accumulate=accumulate,
        amp=amp,
        device=device,
        grad=grad,
    )
    limit = parse_bytes(budget) if isinstance(budget, str) else budget
    try:
        rehearsal = rehearse(work, settings)
    except NotPredictableError as error:
        if not fallback or settings != Settings():
            raise
        log = record_steps(work, steps=settings.steps)
        notes = [*log.notes, f"real steps were run: {error.why}"]
        rehearsal = Rehearsal(log, None, None, notes=notes)
        return predicted(rehearsal, settings, limit, from_real_steps=True)
    if isinstance(settings.checkpoint, str):
        _note_no_effect(work, settings, rehearsal)
    return predicted(rehearsal, settings, limit)


def _note_no_effect(work: Workload, settings: Settings, rehearsal: Rehearsal) -> None:
    """Say where blocks that were chosen by number lower nothing, such as single layers."""
    plain = rehearse(work, replace(settings, checkpoint=None))
    if _peak(plain) <= _peak(rehearsal):
        rehearsal.notes.append(
            f"checkpoint: {settings.checkpoint!r} lowers nothing here: no repeated blocks with anything inside that need not "
            "be kept; give the paths of the modules to recompute"
        )


def _peak(rehearsal: Rehearsal) -> Bytes:
    lives = Lifetimes.of(rehearsal.log, cuda=rehearsal.emulates_cuda)
    return lives.peak(sizes_of(rehearsal.log)).nbytes


def predicted(
    rehearsal: Rehearsal,
    settings: Settings,
    budget_bytes: Bytes | None = None,
    *,
    from_real_steps: bool = False,
) -> PredictedMemory:
    """The record of a rehearsal."""
    log = rehearsal.log
    lives = Lifetimes.of(log, cuda=rehearsal.emulates_cuda)
    sizes = sizes_of(log)
    peak = lives.peak(sizes)
    reserved = lives.reserved(sizes)
    return PredictedMemory(
        peak_bytes=peak.nbytes,
        ledger_bytes=lives.ledger(sizes, peak.event),
        peak_phase=lives.phase_of(peak.event),
        tensor_peak_bytes=lives.peak(lives.without(sizes, "workspace")).nbytes,
        phase_peaks_bytes=lives.phase_peaks(sizes),
        reserved_bytes=reserved,
        fits=None if budget_bytes is None else needed(peak.nbytes, reserved) <= budget_bytes,
        at_peak=held_by_place(log.live_at(peak.event), MOST_PLACES),
        settings=settings.labels,
        from_real_steps=from_real_steps,
        notes=[*rehearsal.notes, *log.notes, *(ASSUMPTIONS if rehearsal.emulates_cuda else ())],
    )


def needed(peak_bytes: Bytes, reserved_bytes: Bytes | None) -> Bytes:
    """What a budget must hold: the tensors, or on CUDA what the process takes of the device."""
    return peak_bytes if reserved_bytes is None else reserved_bytes + CONTEXT_BYTES
