"""Programs of their own for `scale`: the schedules under fake process groups, and real runs under torchrun.

`python -m pyrometer.scaling.worker REQUEST.json`; answers lie beside the request.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

from pyrometer.bench.garbage import hiding
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, from_json, to_json
from pyrometer.scaling.distributing import Trainee, alone, distributed, silent
from pyrometer.scaling.fake import fake_group
from pyrometer.scaling.links import Measured
from pyrometer.scaling.record import Operation, Parallel, Schedule
from pyrometer.scaling.schedule import copying_s, schedules_at
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target
from pyrometer.workload.training import Training

SIZES = tuple(1 << power for power in (10, 14, 17, 20, 22, 24))
"""Bytes of the messages that links are measured with."""

OPERATIONS: tuple[Operation, ...] = ("all_reduce", "all_gather", "reduce_scatter")
TIMEOUT = dt.timedelta(seconds=60)
SUMMED: dict[Parallel, int] = {"ddp": 2, "fsdp": 8}
"""Messages of a kind, which a step of a small model has about as many of: buckets, or one for each block."""

_kept: list[Trainee] = []
"""Until this process ends; see `main`."""

BLOCKS = (4, 12)
"""Fewest and most calls of one kind before those of the next."""

BLOCK_S = 0.5
"""Of a block, between these."""

UNSETTLED = 3
"""The first of so many in a block find caches and memory as another kind left them, which no step of a real run does."""


class Request(Record, frozen=True, kw_only=True):
    """What a worker is to do: schedules at `ranks`, or, under torchrun, links and steps for `budget_s`."""

    target: str | None = None
    parallel: Parallel = "ddp"
    ranks: list[int] = []
    budget_s: Seconds = 10.0


class Schedules(Record, frozen=True, kw_only=True):
    """One for each number of ranks."""

    schedules: list[Schedule]


class Ran(Record, frozen=True, kw_only=True):
    """What a real run of some processes took."""

    backend: str
    links: list[Measured]
    alone_s: list[Seconds] = []
    """Steps of each process by itself, not wrapped."""

    own_s: list[Seconds] = []
    """The same, wrapped for a group that sends nothing."""

    together_s: list[Seconds] = []
    """Steps with communication, of the slowest process."""


def main(path: Path) -> None:
    """Do what a request says."""
    request = from_json(Request, path.read_bytes())
    if request.ranks:
        torch.set_num_threads(1)
        schedules = schedules_at(lambda: _work(request), request.ranks, request.parallel, request.budget_s)
        _write(path, Schedules(schedules=schedules))
        return
    ran = run(request)
    if int(os.environ["RANK"]) == 0:
        _write(path, ran)
    dist.barrier()
    # The threads of gloo and the reducer of DDP may wait for each other when Python takes them down.
    sys.stderr.flush()
    os._exit(0)


def _work(request: Request) -> Training:
    assert request.target is not None
    with hiding():
        work = load_workload(parse_target(request.target))
    assert isinstance(work, Training)
    return work


def _write(request: Path, answer: Schedules | Ran) -> None:
    part = request.with_suffix(".part")
    part.write_bytes(to_json(answer))
    part.rename(request.with_suffix(".answer"))


def run(request: Request) -> Ran:
    """Collectives of several sizes, and steps with and without communication; called by every process of a job."""
    on_gpu = torch.cuda.is_available()
    backend = "nccl" if on_gpu else "gloo"
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // int(os.environ["LOCAL_WORLD_SIZE"])))
    dist.init_process_group(backend, timeout=TIMEOUT)
    sent = messages(device)
    if request.target is not None:
        _kept.append(alone(_work(request)))
        _kept.append(silent(_work(request), request.parallel, fake_group()))
        _kept.append(distributed(_work(request), request.parallel))
    calls = [*sent.values(), *(trainee.step for trainee in _kept)]
    times = in_turns(calls, device, request.budget_s)
    # The last to come did not wait: what the message itself takes is what it took there.
    taken = in_sums([each.min(dim=0).values for each in times[: len(sent)]], SUMMED[request.parallel])
    links = [(*message, took_s) for message, took_s in zip(sent, taken, strict=True)]
    if not _kept:
        return Ran(backend=backend, links=links)
    apart, wrapped, together = times[len(sent) :]
    return Ran(
        backend=backend,
        links=links,
        alone_s=apart.flatten().tolist(),
        own_s=(wrapped - copying_s(_kept[1])).flatten().tolist(),
        together_s=together.max(dim=0).values.tolist(),
    )


def in_sums(kinds: Sequence[torch.Tensor], num: int) -> list[Seconds]:
    """What a call of each kind adds where so many follow each other: some take far longer than most, and a step holds its share of these.

    A kind's median, times what means over so many in turn are above the median, of half of the kinds. Steps are told by their median, too;
    what disturbs the machine for once is in neither.

    >>> in_sums([torch.tensor([1.0, 1.0, 1.0, 5.0] * 8), torch.tensor([2.0, 2.0, 2.0, 10.0] * 8)], 4)
    [2.0, 4.0]
    """
    medians = torch.stack([times_s.median() for times_s in kinds])
    excess = []
    for times_s, median in zip(kinds, medians, strict=True):
        each = min(num, len(times_s))
        means = times_s[: len(times_s) // each * each].view(-1, each).mean(dim=1)
        excess.append(means.median() / median)
    return (medians * torch.stack(excess).median()).tolist()


def messages(device: torch.device) -> dict[tuple[Operation, Bytes], Callable[[], object]]:
    """Collectives by kind and size."""
    ranks = dist.get_world_size()
    made: dict[tuple[Operation, Bytes], Callable[[], object]] = {}
    for size in SIZES:
        whole = torch.zeros(size // 4 // ranks * ranks, device=device)
        part = torch.zeros(len(whole) // ranks, device=device)
        for operation in OPERATIONS:
            made[operation, whole.nbytes] = partial(_collective, operation, whole, part)
    return made


def _collective(operation: Operation, whole: torch.Tensor, part: torch.Tensor) -> None:
    """As DDP and FSDP2 send: buckets stay, what is gathered or scattered comes into new memory."""
    if operation == "all_reduce":
        dist.all_reduce(whole)
    elif operation == "all_gather":
        dist.all_gather_into_tensor(torch.empty_like(whole), part)
    else:
        dist.reduce_scatter_tensor(torch.empty_like(part), whole)


def in_turns(
    calls: Sequence[Callable[[], object]], device: torch.device, budget_s: Seconds
) -> list[torch.Tensor]:
    """Times of each call, `[rank, repetition]`: a block of every one in turns, so that all meet the same machine.

    Each begins on all ranks at once, and rank 0 says when it is enough.
    """
    times: list[list[Seconds]] = [[] for _ in calls]
    go_on = torch.ones(1, device=device)
    sizes = _block_sizes(calls, device)
    began_s = time.perf_counter()
    while go_on.item():
        for call, size, into in zip(calls, sizes, times, strict=True):
            for number in range(size):
                dist.barrier()
                took_s = _timed(call, device)
                if UNSETTLED * number >= size:
                    into.append(took_s)
        go_on.fill_(float(time.perf_counter() - began_s < budget_s))
        dist.broadcast(go_on, 0)
    return [_all_ranks(each, device) for each in times]


def _block_sizes(calls: Sequence[Callable[[], object]], device: torch.device) -> list[int]:
    """How often each is called before the next kind, the same on all ranks; what it costs warm decides."""
    fewest, most = BLOCKS
    took_s = torch.tensor(
        [[_timed(call, device) for _ in range(fewest)][-1] for call in calls], device=device
    )
    dist.all_reduce(took_s, dist.ReduceOp.MAX)
    return [min(most, max(fewest, int(BLOCK_S / max(each, 1e-9)))) for each in took_s.tolist()]


def _timed(call: Callable[[], object], device: torch.device) -> Seconds:
    began_s = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - began_s


def _all_ranks(times: list[Seconds], device: torch.device) -> torch.Tensor:
    own = torch.tensor(times, dtype=torch.float64, device=device)
    gathered = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, own)
    return torch.stack(gathered).cpu()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
