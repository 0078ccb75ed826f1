"""What a step must take, from what its parts cost: the slowest of workers, training process and CPUs sets the pace.

With workers the parts run at the same time, so that the step takes as long as the slowest: `t_step ≈ max(t_data, t_compute)`.
Without workers they take turns: `t_step = t_data + t_compute`. Fitted on few measured points, the same formulas say what another
number of workers would bring; this is how tf.data tunes (Murray et al., tf.data: A Machine Learning Data Processing Framework,
2021), reduced to one parallel stage.
"""

from __future__ import annotations

from typing import Annotated

from pyrometer.advice import Gain
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc


def modelled(saves_s: Seconds) -> Gain:
    """The gain of a change whose step is predicted."""
    return Gain(
        saves_s=saves_s, method="model: the slowest of workers, training process and CPUs sets the pace"
    )


class LoaderModel(Record, frozen=True, kw_only=True):
    """What one batch costs, per process that works on it."""

    batch_s: Annotated[Seconds, doc("dataset and collate, in one worker")]
    batch_cpu_s: Annotated[Seconds, doc("of it, on a CPU or waiting for one")]
    alone_s: Annotated[
        Seconds | None, doc("dataset and collate in the training process, without workers; null for the same")
    ] = None
    overhead_s: Annotated[Seconds, doc("what a worker does around a batch, such as packing it")] = 0.0
    receive_s: Annotated[Seconds, doc("taking a ready batch, in the training process")] = 0.0
    compute_s: Annotated[Seconds, doc("the step without its data")] = 0.0
    compute_cpu_s: Annotated[Seconds, doc("of it, on CPUs, all threads")] = 0.0
    cpus: Annotated[float, doc("CPUs that loader and training may keep busy together")] = 1.0

    @property
    def compute_with_receive_s(self) -> Seconds:
        """The step as it is when batches are always ready."""
        return self.compute_s + self.receive_s

    def data_s(self, num_workers: int) -> Seconds:
        """The time between two batches if nobody ever made the loader wait.

        >>> LoaderModel(batch_s=0.064, batch_cpu_s=0.0).data_s(4)
        0.016
        """
        if num_workers == 0:
            return self.batch_s if self.alone_s is None else self.alone_s
        by_workers = (self.batch_s + self.overhead_s) / num_workers
        return max(by_workers, (self.batch_cpu_s + self.overhead_s) / self.cpus)

    def step_s(self, num_workers: int) -> Seconds:
        """The predicted step.

        >>> model = LoaderModel(batch_s=0.064, batch_cpu_s=0.0, compute_s=0.020)
        >>> [round(model.step_s(workers), 4) for workers in (0, 1, 2, 3, 4, 8)]
        [0.084, 0.064, 0.032, 0.0213, 0.02, 0.02]
        """
        if num_workers == 0:
            return self.data_s(0) + self.compute_s
        work_s = self.batch_cpu_s + self.overhead_s + self.compute_cpu_s + self.receive_s
        return max(self.data_s(num_workers), self.compute_with_receive_s, work_s / self.cpus)

    def knee(self, counts: list[int], tolerance: float = 0.02) -> int:
        """The smallest of these numbers of workers that is within `tolerance` of the best predicted step.

        >>> LoaderModel(batch_s=0.064, batch_cpu_s=0.0, compute_s=0.020).knee([0, 1, 2, 3, 4, 6, 8])
        4
        """
        best = min(self.step_s(count) for count in counts)
        return min(count for count in counts if self.step_s(count) <= best * (1 + tolerance))
