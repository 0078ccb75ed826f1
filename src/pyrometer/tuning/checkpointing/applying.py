"""A choice of modules in force, as a workload."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from pyrometer.workload.changes.checkpointing import checkpointed
from pyrometer.workload.changes.policies import Policy
from pyrometer.workload.training import Training, TrainingSession


class CheckpointedTraining(Training):
    """A training step whose sessions run with modules behind checkpointing.

    Attributes:
        behind: paths of the modules that the session opened last ran so.
    """

    def __init__(
        self,
        work: Training,
        policies: Mapping[str, Policy],
        written: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        vars(self).update(vars(work))
        self.name = f"{work.name}, checkpointed"
        self.policies = dict(policies)
        self.written = dict(written or {})
        self.behind: list[str] = []

    @contextlib.contextmanager
    def open(self) -> Iterator[TrainingSession]:
        """A session of the training step, on a model with checkpointing."""
        with super().open() as session, checkpointed(session.model, self.policies, self.written):
            self.behind[:] = self.policies
            yield session
