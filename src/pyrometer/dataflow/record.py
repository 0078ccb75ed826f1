"""Recording the dataflow of a workload's steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from pyrometer.dataflow.graph import FlowGraph
from pyrometer.dataflow.recorder import Recorder
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.workload.failure import user_code
from pyrometer.workload.workload import Session, Workload

FEWEST = 3
"""Steps: what one step makes and nobody reads is only known when the next one has passed, and of two durations the shorter one counts."""


def record_dataflow(
    work: Workload,
    *,
    steps: int = 4,
    warmup: int = 1,
    budget_s: Seconds = 5.0,
    clock: Callable[[], Seconds] = time.perf_counter,
) -> FlowGraph:
    """Run a few steps, and record every operator with what it reads and writes.

    A step takes several times as long meanwhile. The user's objects, hooks, settings and random state are as before at the end.

    Args:
        work: what to record.
        steps: how many steps at most.
        warmup: steps before, which are not recorded.
        budget_s: after this time no more steps begin, but for the first three.
        clock: gives seconds.

    Raises:
        InputError: the workload cannot be prepared, or is compiled.
        UserProgramError: a step raised.

    >>> from pyrometer.workload.inference import Inference
    >>> graph = record_dataflow(Inference(nn.Linear(4, 2), torch.ones(3, 4)), steps=2)
    >>> graph.calls[-1].name, graph.num_steps, graph.complete
    ('aten::addmm', 2, True)
    """
    began = clock()
    with work.open() as session:
        session.activate()
        if _is_compiled(session):
            raise InputError("what torch.compile made runs no operators that could be followed")
        for number in range(warmup):
            with user_code(f"{work.name}: step {number + 1}, before its dataflow is recorded"):
                session.phased_step(_unmarked)
        recorder = Recorder(clock, _settling(session.device))
        for number in range(steps):
            if recorder.is_paused or (number >= FEWEST and clock() - began > budget_s):
                break
            with user_code(f"{work.name}: step {warmup + number + 1}, whose dataflow is recorded"):
                _step(session, recorder)
        return recorder.finish()


def _step(session: Session, recorder: Recorder) -> None:
    with recorder.recording():
        recorder.returned(session.phased_step(_unmarked))


def _unmarked(_phase: str) -> None:
    pass


def _settling(device: torch.device) -> Callable[[], None]:
    if device.type == "cuda":
        return lambda: torch.cuda.synchronize(device)
    return _at_once


def _at_once() -> None:
    pass


def _is_compiled(session: Session) -> bool:
    model: Any = getattr(session, "model", None)
    return isinstance(model, nn.Module) and any(
        hasattr(part, "_orig_mod") or getattr(part, "_compiled_call_impl", None) is not None
        for part in model.modules()
    )
