"""The largest batch within a memory and a latency limit: predicted first, and then run a few times."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from pyrometer.bench.clock import Clock
from pyrometer.errors import InputError
from pyrometer.loading.figures import require_count, require_positive
from pyrometer.quantity import Bytes, Seconds, counted, format_bytes, format_seconds
from pyrometer.settings import parse_bytes
from pyrometer.tuning.batching.largest_record import BatchTrial, LargestBatch
from pyrometer.tuning.batching.resizing import MakeBatch, with_batch
from pyrometer.tuning.batching.search import Limits, Search
from pyrometer.tuning.batching.trial import usable
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.changes.micro_batches import num_samples
from pyrometer.workload.failure import user_code
from pyrometer.workload.inference import Inference, home_of
from pyrometer.workload.inputs import argument_source, leading_dimension
from pyrometer.workload.training import Training

DEFAULT_BUDGET_S = 20.0
MOST = 2**16
TRIALS = 4


def largest_batch(
    work: Inference | Training,
    *,
    budget: Bytes | str | None = None,
    latency_s: Seconds | None = None,
    make_batch: MakeBatch | None = None,
    trials: int = TRIALS,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    most: int = MOST,
    clock: Clock | None = None,
) -> LargestBatch:
    """Find the largest batch whose peak keeps within a memory limit and whose step keeps within a latency limit.

    How memory grows with the batch is predicted on tensors without data. Then at most a few sizes are run: to verify the
    prediction, and to find out how the latency grows. Memory and latency are taken to grow with the batch. A size that runs
    out of memory is stepped back from; on the CPU no size is run that is not expected to fit into what is available.

    Args:
        work: a training or an inference; its state is restored after each trial.
        budget: the most that the peak may be, a number of bytes or a text such as `2GiB`: of torch's tensors on the CPU, of what its allocator reserves on CUDA.
            By default what is free there, on the CPU less a tenth.
        latency_s: the most that a step may take; the upper end of the median's interval must keep within it.
        make_batch: from a number of samples to the inputs of an inference or a batch of a training. By default samples of
            the present ones are repeated or left out.
        trials: sizes to run at most; with 0 memory is predicted only.
        budget_s: time for measuring latencies, of all trials together.
        most: larger batches are not looked for.
        clock: by default the right one for the device.

    Returns:
        With accumulation, `batch` is the micro-batch.

    Raises:
        InputError: an illegal limit, a workload of another kind, or one whose batch cannot be changed.
        UserProgramError: a step raised at the present batch, or making a batch raised.

    >>> from torch import nn
    >>> import pyrometer as pm
    >>> found = largest_batch(pm.Inference(nn.Linear(256, 256), torch.randn(8, 256)), budget="1MiB")
    >>> found.batch, found.limited_by, found.verified
    (383, 'memory', True)
    """
    budget = parse_bytes(budget) if isinstance(budget, str) else budget
    _require(budget, latency_s, trials, budget_s, most)
    device = _device_of(work)
    limits = Limits(budget if budget is not None else usable(device), latency_s, most)
    present = min(_present(work), most)
    search = Search(
        lambda batch: with_batch(work, batch, make_batch),
        limits,
        device,
        present,
        trials=trials,
        trial_s=budget_s / max(trials, 1),
        clock=clock,
    )
    search.run()
    return _told(work.name, search)


def _told(name: str, search: Search) -> LargestBatch:
    """What came of a search."""
    limits, best = search.limits, search.best
    fitting = [trial for trial in search.tried if trial.batch == best and trial.outcome == "fits"]
    trial = fitting[-1] if fitting else None
    return LargestBatch(
        name=name,
        batch=best or None,
        limited_by=search.limited_by,
        memory_limit_bytes=limits.memory_bytes,
        latency_limit_s=limits.latency_s,
        most_batch=limits.most,
        predicted_bytes=search.predicted(best) if best else None,
        measured_bytes=trial.measured_bytes if trial else None,
        latency_s=trial.latency_s if trial else None,
        latency_low_s=trial.latency_low_s if trial else None,
        latency_high_s=trial.latency_high_s if trial else None,
        verified=trial is not None,
        tried=search.tried,
        sentence=_sentence(search, trial),
        notes=search.notes,
    )


def _sentence(search: Search, trial: BatchTrial | None) -> str:
    limits = search.limits
    within = f"{format_bytes(limits.memory_bytes)}" + (
        f" and {format_seconds(limits.latency_s)}" if limits.latency_s is not None else ""
    )
    if not search.best:
        return f"not even a batch of 1 keeps within {within}: limited by {search.limited_by}"
    if trial is None:
        return f"batch {search.best} is predicted to keep within {within}; it was not run"
    took = f", {format_seconds(trial.latency_s)} per step" if trial.latency_s is not None else ""
    limited = {
        "nothing": f"no limit was reached up to {counted(limits.most, 'sample')}",
        "trials": "larger ones were not tried",
    }.get(search.limited_by, f"limited by {search.limited_by}")
    return f"batch {search.best} keeps within {within}: {format_bytes(trial.measured_bytes)}{took}; {limited}"


def _require(budget: Any, latency_s: Any, trials: Any, budget_s: Seconds, most: Any) -> None:
    """Raise for what no search can use.

    Raises:
        InputError: it says what is legal.
    """
    if budget is not None:
        require_count("budget", budget)
    require_count("trials", trials, least=0)
    require_count("most", most)
    if latency_s is not None:
        require_positive("latency_s", latency_s, "0.01")
    if latency_s is not None and trials == 0:
        raise InputError(
            "trials: got 0 with a latency limit; latencies cannot be predicted, give at least 2 trials"
        )
    require_positive("budget_s", budget_s, f"{DEFAULT_BUDGET_S:g}")


def _device_of(work: Any) -> torch.device:
    if not isinstance(work, (Inference, Training)):
        raise InputError(
            f"work: got {type(work).__name__}; its batch cannot be changed, give pm.Inference(…) or pm.Training(…)"
        )
    return home_of(work.parts.model if isinstance(work, Training) else work.model)


def _present(work: Inference | Training) -> int:
    """The batch as it is now.

    Raises:
        InputError: it holds no tensor with a leading dimension.
        UserProgramError: making the inputs raised.
    """
    if isinstance(work, Training):
        with contextlib.closing(BatchStream(work.batches)) as stream, user_code("making the batch"):
            return max(num_samples(stream.next()), 1)
    with user_code("making the inputs"):
        source, _ = argument_source(work.inputs, _device_of(work), work.config)
        batch = leading_dimension(source())
    if not batch:
        raise InputError("inputs: hold no tensor with a leading dimension, so their batch cannot be changed")
    return batch
