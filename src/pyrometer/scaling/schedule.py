"""Which collectives a step issues, and when: torch is asked, by steps under a process group that is fake at that number of ranks."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from pyrometer.quantity import Ratio, Seconds
from pyrometer.scaling.distributing import Trainee, alone, distributed, state_bytes, unit_bytes
from pyrometer.scaling.fake import join_fake_world
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

Clock = Callable[[], Seconds]


def schedules_at(
    load: Callable[[], Training], numbers: Sequence[int], parallel: Parallel, budget_s: Seconds
) -> list[Schedule]:
    """The collectives of a step at each number of ranks; this process has no process group.

    What is sent is asked at each number. When, and what wrapping costs without any message, is timed on one thread, beside the same
    training that is not wrapped: of DDP at the first number, since it does the same at all; of FSDP2 at each, since the more ranks there are
    the smaller is the shard that a rank updates, and the more pieces it copies.

    Args:
        load: makes the training anew, as often as it is called.
        numbers: of ranks.
        parallel: how it is wrapped.
        budget_s: for all timing; two steps of each kind are timed in any case.

    Raises:
        InputError: this torch has no fake process group.
    """
    timed: Timed | None = None
    times = len(numbers) if parallel == "fsdp" else 1
    schedules = []
    for ranks in numbers:
        work = load()
        unit = unit_bytes(work.parts.model) if parallel == "fsdp" else 0
        join_fake_world(ranks)
        try:
            trainee = distributed(work, parallel)
            issued: Issued = []
            if parallel == "ddp":
                _note_buckets(trainee, issued)
            for _ in range(WARMUP):
                trainee.step()
            calls = _watched(trainee, issued, parallel).calls
            if timed is None or parallel == "fsdp":
                timed = _in_turns(trainee, alone(load()), issued, parallel, budget_s / times)
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
                overlaps=trainee.on_device,
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


def _note_buckets(trainee: Trainee, issued: Issued) -> None:
    """DDP's own reducer does not pass the dispatcher with what a fake group answers; a hook stands where it would send."""

    def note(bucket: Any) -> torch.futures.Future[torch.Tensor]:
        issued.append(("all_reduce", bucket.buffer().nbytes, time.perf_counter_ns()))
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    trainee.model.register_comm_hook(None, lambda _state, bucket: note(bucket))  # type: ignore[operator]


class _Issues(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes what is sent, and what a fake group takes for it: it copies, where a real one would send."""

    def __init__(self, issued: Issued, clock: Clock) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._issued, self._clock = issued, clock
        self.sending_s = 0.0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.namespace != "c10d":
            return function(*args, **(kwargs or {}))
        name = function._schema.name.partition("::")[2]  # noqa: SLF001 - an operator's public name has its overload
        if name in _OPERATIONS:
            operation, whole = _OPERATIONS[name]
            message = args[whole]
            tensors = message if isinstance(message, (list, tuple)) else [message]
            sizes = sum(tensor.nbytes for tensor in tensors)
            self._issued.append((operation, sizes, time.perf_counter_ns()))
        began_s = self._clock()
        answer = function(*args, **(kwargs or {}))
        self.sending_s += self._clock() - began_s
        return answer


def _in_turns(
    trainee: Trainee, bare: Trainee, issued: Issued, parallel: Parallel, budget_s: Seconds
) -> Timed:
    """Plain steps, wrapped ones, and wrapped ones that are watched, in turns: watching takes time, which is none of wrapping's."""
    clock = _clock(trainee)
    bare.step()
    watched: list[Watched] = []
    ratios: list[Ratio] = []
    until_s = time.perf_counter() + budget_s
    while len(ratios) < LEAST_STEPS or (len(ratios) < MOST_STEPS and time.perf_counter() < until_s):
        times_s = [clock()]
        for kind in (bare, trainee):
            kind.step()
            times_s.append(clock())
        seen = _watched(trainee, issued, parallel)
        watched.append(seen)
        ratios.append((times_s[2] - times_s[1] - seen.sending_s) / (times_s[1] - times_s[0]))
    calls = zip(*(seen.calls for seen in watched), strict=True)
    return Timed(
        at=[statistics.median(call.at for call in same) for same in calls],
        ends={phase: statistics.median(seen.ends[phase] for seen in watched) for phase in watched[0].ends},
        # DDP does all that the plain step does; FSDP2 updates a shard, and may do less.
        ratio=max(statistics.median(ratios), 1.0 if parallel == "ddp" else 0.0),
    )


def copying_s(trainee: Trainee) -> Seconds:
    """What a fake group copies in a step of FSDP2, where a real one would send; DDP's sends nothing."""
    if isinstance(trainee.model, DistributedDataParallel):
        return 0.0
    return statistics.median(_watched(trainee, [], "fsdp").sending_s for _ in range(LEAST_STEPS + 1))


def _clock(trainee: Trainee) -> Clock:
    """Where the processor computes, its time is what counts: other programs have no part in it."""
    if not trainee.on_device:
        return time.process_time

    def caught_up() -> Seconds:
        torch.cuda.synchronize()
        return time.perf_counter()

    return caught_up


class Watched(NamedTuple):
    """The collectives of one step, when its phases end, as shares of it, and what a fake group took for them."""

    calls: list[CollectiveCall]
    ends: dict[str, Ratio]
    sending_s: Seconds


def _watched(trainee: Trainee, issued: Issued, parallel: Parallel) -> Watched:
    issued.clear()
    ends: dict[str, int] = {}
    issues = _Issues(issued, _clock(trainee))
    began_ns = time.perf_counter_ns()

    def mark(phase: str) -> None:
        ends[phase] = time.perf_counter_ns()

    with issues if parallel == "fsdp" else contextlib.nullcontext():
        trainee.step(mark)
    whole_ns = ends["optimizer"] - began_ns
    calls = [
        CollectiveCall(operation=operation, bytes=size, at=(time_ns - began_ns) / whole_ns)
        for operation, size, time_ns in issued
    ]
    return Watched(
        calls, {phase: (end_ns - began_ns) / whole_ns for phase, end_ns in ends.items()}, issues.sending_s
    )
