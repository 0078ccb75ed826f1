"""Recording the allocations of a workload's steps."""

from __future__ import annotations

import gc
from collections.abc import Callable

from torch import nn

from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.memory.recording.recorder import AllocationRecorder, Workspace
from pyrometer.memory.recording.unfollowed import refusal_of_hooks, with_or_without_hooks
from pyrometer.workload.failure import user_code
from pyrometer.workload.training import TrainingSession
from pyrometer.workload.workload import Session, Workload

STEPS = 2
"""The first step, in which optimizers make their state, and one with it."""


def record_steps(work: Workload, *, steps: int = STEPS) -> AllocationLog:
    """Run a workload's first steps and record what they allocate on its device.

    What `torch.compile` made runs eagerly meanwhile, because torch leaves compiled code alone under a dispatch mode.

    Raises:
        InputError: the workload cannot be prepared.
        UserProgramError: a step raised.
    """
    with work.open() as session:
        session.activate()
        gc.collect()  # garbage of before must not be freed in the middle of the recording
        return with_or_without_hooks(lambda saved: record_session(session, steps=steps, saved=saved))


def record_session(
    session: Session, *, steps: int = STEPS, saved: bool = True, workspace: Workspace | None = None
) -> AllocationLog:
    """Run the first steps of an open session and record what they allocate on its device.

    Args:
        session: which one.
        steps: how many.
        saved: follow what autograd saves.
        workspace: bytes that operators take for themselves, where no allocator tells.

    Raises:
        UnfollowedSavedTensorsError: the program refuses that `saved`; run it again without.
        UserProgramError: a step raised.
    """
    recorder = AllocationRecorder(session.device, saved=saved, workspace=workspace)
    know_parts(recorder, session)
    session.inputs_seen = recorder.register_inputs
    try:
        with refusal_of_hooks(), recorder, user_code("the step"):
            for step in range(steps):
                mark = _marker(recorder, step)
                output = session.phased_step(mark)
                mark("rest")
                del output
    finally:
        session.inputs_seen = None
    return recorder.log


def know_parts(recorder: AllocationRecorder, session: Session) -> None:
    """Register a session's model and optimizer, where it has them."""
    model = getattr(session, "model", None)
    if isinstance(model, nn.Module):
        recorder.know_model(getattr(model, "_orig_mod", model))
    if isinstance(session, TrainingSession):
        for part in session.parts.modules:
            recorder.know_model(part)
        recorder.know_optimizer(session.parts.optimizer)


def _marker(recorder: AllocationRecorder, step: int) -> Callable[[str], None]:
    return lambda phase: recorder.end_phase(phase, step=step)
