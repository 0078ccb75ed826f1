"""Which collectives a step issues, and when: torch is asked, by steps under a process group that is fake at that number of ranks."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from pyrometer.errors import InputError
from pyrometer.quantity import Ratio, Seconds
from pyrometer.scaling.distributing import Trainee, alone, distributed, state_bytes, unit_bytes
from pyrometer.scaling.record import CollectiveCall, Operation, Parallel, Schedule
from pyrometer.workload.training import Training

WARMUP = 3
"""Steps before: DDP sorts its buckets after the first."""

LEAST_STEPS, MOST_STEPS = 2, 9

_OPERATIONS: dict[str, tuple[Operation, int]] = {
    "allreduce_": ("all_reduce", 0),
    "allreduce_coalesced_": ("all_reduce", 0),
    "_allgather_base_": ("all_gather", 0),
    "_reduce_scatter_base_": ("reduce_scatter", 1),
    "broadcast_": ("broadcast", 0),
}
"""Operators of c10d, and which argument is the whole message."""

Issued = list[tuple[Operation, int, int]]
"""Operation, bytes and time in ns."""


def schedules_at(
    load: Callable[[], Training], numbers: Sequence[int], parallel: Parallel, budget_s: Seconds
) -> list[Schedule]:
    """The collectives of a step at each number of ranks; this process has no process group.

    What is sent is asked at each number. When, and what wrapping costs without any message, does not depend on it, and is timed at the
    first, on one thread, beside the same training that is not wrapped.

    Args:
        load: makes the training anew, as often as it is called.
        numbers: of ranks.
        parallel: how it is wrapped.
        budget_s: for timing; two steps of each kind are timed in any case.

    Raises:
        InputError: this torch has no fake process group.
    """
    timed: Timed | None = None
    schedules = []
    for ranks in numbers:
        work = load()
        unit = unit_bytes(work.parts.model) if parallel == "fsdp" else 0
        _fake_group(ranks)
        try:
            trainee = distributed(work, parallel)
            issued: Issued = []
            if parallel == "ddp":
                _note_buckets(trainee, issued)
            for _ in range(WARMUP):
                trainee.step()
            calls, _ = _step(trainee, issued, parallel)
            if timed is None:
                timed = _in_turns(trainee, alone(load()), issued, parallel, budget_s)
            trained, state = state_bytes(trainee)
        finally:
            dist.destroy_process_group()
        shares = timed.at if len(timed.at) == len(calls) else [call.at for call in calls]
        schedules.append(
            Schedule(
                ranks=ranks,
                parallel=parallel,
                calls=[
                    CollectiveCall(operation=call.operation, bytes=call.bytes, at=at)
                    for call, at in zip(calls, shares, strict=True)
                ],
                forward_ends=timed.ends["forward"],
                backward_ends=timed.ends["backward"],
                overlaps=any(parameter.is_cuda for parameter in trainee.model.parameters()),
                wrapping_ratio=timed.ratio,
                trained_bytes=trained,
                state_bytes=state,
                largest_unit_bytes=unit,
            )
        )
    return schedules


class Timed(NamedTuple):
    """Shares of a step, medians over several: when each collective is issued, when phases end; and what wrapping costs."""

    at: list[Ratio]
    ends: dict[str, Ratio]
    ratio: Ratio


def _fake_group(ranks: int) -> None:
    try:
        from torch.testing._internal.distributed.fake_pg import FakeStore  # the one place that has it
    except ImportError as error:
        raise InputError(
            f"torch {torch.__version__} has no fake process group; scale needs torch 2.13 or later"
        ) from error
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())


def _note_buckets(trainee: Trainee, issued: Issued) -> None:
    """DDP's own reducer does not pass the dispatcher with what a fake group answers; a hook stands where it would send."""

    def note(bucket: Any) -> torch.futures.Future[torch.Tensor]:
        issued.append(("all_reduce", bucket.buffer().nbytes, time.perf_counter_ns()))
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    trainee.model.register_comm_hook(None, lambda _state, bucket: note(bucket))  # type: ignore[operator]


class _Issues(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, issued: Issued) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._issued = issued

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.namespace == "c10d":
            name = function._schema.name.partition("::")[2]  # noqa: SLF001 - an operator's public name has its overload
            if name in _OPERATIONS:
                operation, whole = _OPERATIONS[name]
                message = args[whole]
                tensors = message if isinstance(message, (list, tuple)) else [message]
                sizes = sum(tensor.nbytes for tensor in tensors)
                self._issued.append((operation, sizes, time.perf_counter_ns()))
        return function(*args, **(kwargs or {}))


def _in_turns(
    trainee: Trainee, bare: Trainee, issued: Issued, parallel: Parallel, budget_s: Seconds
) -> Timed:
    """Steps of the wrapped training and plain ones in turns."""
    bare.step()
    runs: list[tuple[list[CollectiveCall], dict[str, Ratio]]] = []
    ratios: list[Ratio] = []
    until_s = time.perf_counter() + budget_s
    while len(runs) < LEAST_STEPS or (len(runs) < MOST_STEPS and time.perf_counter() < until_s):
        began_s = time.perf_counter()
        bare.step()
        wrapped_s = time.perf_counter()
        runs.append(_step(trainee, issued, parallel))
        ratios.append((time.perf_counter() - wrapped_s) / (wrapped_s - began_s))
    calls = zip(*(calls for calls, _ in runs), strict=True)
    return Timed(
        at=[statistics.median(call.at for call in same) for same in calls],
        ends={phase: statistics.median(ends[phase] for _, ends in runs) for phase in runs[0][1]},
        ratio=max(1.0, statistics.median(ratios)),
    )


def _step(
    trainee: Trainee, issued: Issued, parallel: Parallel
) -> tuple[list[CollectiveCall], dict[str, float]]:
    """The collectives of one step, and when its phases end, as shares of it."""
    issued.clear()
    ends: dict[str, int] = {}
    began_ns = time.perf_counter_ns()

    def mark(phase: str) -> None:
        ends[phase] = time.perf_counter_ns()

    if parallel == "ddp":
        trainee.step(mark)
    else:
        with _Issues(issued):
            trainee.step(mark)
    whole_ns = ends["optimizer"] - began_ns
    calls = [
        CollectiveCall(operation=operation, bytes=size, at=(time_ns - began_ns) / whole_ns)
        for operation, size, time_ns in issued
    ]
    return calls, {phase: (end_ns - began_ns) / whole_ns for phase, end_ns in ends.items()}
