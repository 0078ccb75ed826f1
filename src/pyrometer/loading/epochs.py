"""What an epoch of few batches allows: workers start anew, nothing hides the first batch, and not all workers get one. Pure."""

from __future__ import annotations

import math

from pyrometer.loading.model import LoaderModel
from pyrometer.quantity import Seconds


def steps_per_epoch(batches: int | None, per_step: float = 1.0) -> float | None:
    """Steps of an epoch, of so many batches each; `None` where its length is not known.

    >>> steps_per_epoch(8, 2.0), steps_per_epoch(None)
    (4.0, None)
    """
    return max(1.0, batches / per_step) if batches else None


def epoch_step_s(
    model: LoaderModel,
    num_workers: int,
    batches: int | None,
    *,
    per_step: float = 1.0,
    start_s: Seconds = 0.0,
) -> Seconds:
    """The mean step of an epoch with workers.

    The workers start, and make their first batches while the step has nothing to do. Then the slowest of three sets the pace: the
    workers, which make a batch each in turn; the steps; and the CPUs that they share.

    Args:
        model: of a step and its batches.
        num_workers: at least one; those beyond the batches have nothing to do.
        batches: of an epoch; `None` for one without an end.
        per_step: batches of a step.
        start_s: to start the workers, in every epoch.

    >>> model = LoaderModel(batch_s=0.032, batch_cpu_s=0.0, compute_s=0.002)
    >>> [round(epoch_step_s(model, workers, 8), 4) for workers in (1, 2, 8, 20)]
    [0.0323, 0.0163, 0.006, 0.006]
    >>> round(epoch_step_s(model, 8, 8, start_s=0.1), 4)
    0.0185
    """
    steps = steps_per_epoch(batches, per_step)
    if batches is None or steps is None:
        return model.step_s(num_workers)
    busy = min(num_workers, batches)
    first_s = busy * model.data_s(busy) / per_step
    by_workers_s = math.ceil(batches / busy) * first_s + model.compute_with_receive_s
    by_steps_s = first_s + steps * model.compute_with_receive_s
    return (start_s + max(by_workers_s, by_steps_s, steps * model.step_s(busy))) / steps
