"""`scale`: a training measured here, and predicted at other numbers of ranks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import torch

from pyrometer.bench.measure import measure
from pyrometer.bench.stage import Progress
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds, format_rate, format_seconds
from pyrometer.scaling.links import fit
from pyrometer.scaling.predict import Alone, predict
from pyrometer.scaling.record import Basis, LinkFit, Links, Parallel, ScaleCheck, Scaling, Schedule
from pyrometer.scaling.running import run_of, schedules_of
from pyrometer.scaling.worker import Ran
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload

DEFAULT_RANKS = (2, 8, 64, 512)
MOST_RANKS = 1 << 20
LINK_PROCESSES = 2
QUIET_CPUS = 0.25
"""Other work on this many CPUs, from which on the variation of steps is not the program's own."""

SHARE_A_CPU = 2
"""Processes of a real run that may share a CPU: steps with and without communication do so alike."""

CHECK_SHARE = 0.25
"""Of the budget, for each real run; what is left measures the step alone."""


@dataclass(frozen=True, kw_only=True)
class ScaleOptions:
    """How `scale` predicts.

    Attributes:
        ranks: numbers of ranks to predict.
        parallel: how the model is distributed.
        checks: numbers of processes to run for real on this machine; none is legal where links are given.
        links: as calibrated or written down before; measured here where there are none.
        price_per_hour: of a rank.
        budget_s: for all that is timed.
        progress: told of the share done, and of what is being done.
    """

    ranks: Sequence[int] = DEFAULT_RANKS
    parallel: Parallel = "ddp"
    checks: Sequence[int] = (2,)
    links: Links | None = None
    price_per_hour: float | None = None
    budget_s: Seconds = 40.0
    progress: Progress = lambda _share, _what: None


def scale(work: Workload, target: str, options: ScaleOptions | None = None) -> Scaling:
    """Predict the step of a training on many ranks.

    Args:
        work: a training.
        target: which makes it, for processes of their own.
        options: how.

    Raises:
        InputError: no training, no number of ranks, or processes that this machine has no devices for.
        UserProgramError: the program fails when it is distributed.
    """
    chosen = options or ScaleOptions()
    training = _require(work, chosen)
    chosen.progress(0.0, "measuring the step alone")
    alone = _alone(training, chosen.budget_s * (1 - CHECK_SHARE * len(chosen.checks)))
    runs: dict[int, Ran] = {}
    for number, processes in enumerate(chosen.checks):
        chosen.progress(0.3 + 0.3 * number / len(chosen.checks), f"running {processes} processes")
        runs[processes] = run_of(processes, chosen.budget_s * CHECK_SHARE, target, chosen.parallel)
    links = chosen.links or _links(runs)
    wanted = sorted({*chosen.ranks, *runs})
    chosen.progress(0.7, f"collectives at {', '.join(map(str, wanted))} ranks")
    found = schedules_of(target, wanted, chosen.parallel, chosen.budget_s * CHECK_SHARE)
    schedules = dict(zip(wanted, found, strict=True))
    return Scaling(
        basis=Basis(
            parallel=chosen.parallel,
            unit=training.unit,
            units_per_step=alone.units,
            links=links,
            schedules=[schedules[ranks] for ranks in chosen.ranks],
        ),
        predictions=[
            predict(schedules[ranks], alone, links, price_per_hour=chosen.price_per_hour)
            for ranks in chosen.ranks
        ],
        assumptions=assumptions(training, chosen, links, disturbed=alone.disturbed),
        checks=[check(ran, schedules[ranks]) for ranks, ran in runs.items()],
    )


def _require(work: Workload, options: ScaleOptions) -> Training:
    if not isinstance(work, Training):
        raise InputError(
            f"{work.name}: is no training; scale predicts optimizer steps: return pm.Training(model, loss, optimizer, batches)"
        )
    for ranks in options.ranks:
        if not 1 < ranks <= MOST_RANKS:
            raise InputError(f"--ranks: got {ranks}; legal is 2 to {MOST_RANKS}, such as 8,64,512")
    on_gpu = torch.cuda.is_available()
    devices = torch.cuda.device_count() if on_gpu else len(os.sched_getaffinity(0))
    most = devices if on_gpu else SHARE_A_CPU * devices
    for processes in options.checks:
        if not 1 < processes <= most:
            what = "GPUs" if on_gpu else "CPUs"
            raise InputError(
                f"--check: got {processes}; this machine has {devices} {what}, so that legal is 2 to {most}"
            )
    if not options.checks and options.links is None:
        raise InputError(
            "--check none: without a real run links are not known; pass --links with a file of calibrate --links"
        )
    return work


def _alone(training: Training, budget_s: Seconds) -> Alone:
    m = measure(training, budget_s=budget_s)
    return Alone(
        times_s=m.samples_s,
        low_s=m.ci_low_s,
        high_s=m.ci_high_s,
        units=m.units_per_step,
        peak_bytes=None if m.memory is None else m.memory.peak_bytes,
        disturbed=m.conditions is not None and (m.conditions.competing_load or 0.0) > QUIET_CPUS,
    )


def measured_links(processes: int, budget_s: Seconds) -> Links:
    """Latency and bandwidth between processes of this machine.

    Raises:
        UserProgramError: a process failed.
    """
    return _links({processes: run_of(processes, budget_s)})


def _links(runs: dict[int, Ran]) -> Links:
    """Fitted to the run of most processes."""
    processes = max(runs)
    ran = runs[processes]
    return Links(backend=ran.backend, ranks_measured=processes, inside=fit(ran.links, processes))


def check(ran: Ran, schedule: Schedule) -> ScaleCheck:
    """The prediction from what the same run took wrapped and without communication, beside what it took with it."""
    links = _links({schedule.ranks: ran})
    low_s, high_s = np.quantile(ran.own_s, (0.25, 0.75))
    alone = Alone(times_s=ran.own_s, low_s=float(low_s), high_s=float(high_s), units=1.0)
    predicted = predict(msgspec.structs.replace(schedule, wrapping_ratio=1.0), alone, links)
    return ScaleCheck(
        ranks=schedule.ranks,
        predicted_s=predicted.step_s,
        low_s=predicted.low_s,
        high_s=predicted.high_s,
        measured_s=float(np.median(ran.together_s)),
        alone_s=float(np.median(ran.alone_s)),
    )


def assumptions(
    training: Training, options: ScaleOptions, links: Links, *, disturbed: bool = False
) -> list[str]:
    """What must hold for the predictions to hold, a sentence each."""
    on_gpu = any(parameter.is_cuda for parameter in training.parts.model.parameters())
    device = "GPU" if on_gpu else "machine"
    told = [
        f"Each rank has a {device} like this one to itself, and the same work per step as here: the global batch grows with the ranks.",
        "Other work disturbed this machine, so that how late ranks are is not known: only the upper ends of the ranges hold it."
        if disturbed
        else "Ranks are late independently of each other, as steps vary here.",
    ]
    if options.links is None:
        told.append(
            f"All ranks are as near as the {links.ranks_measured} processes on this machine over {links.backend}, {speed(links.inside)}; "
            "for several machines pass --links."
        )
    elif links.between is None:
        told.append(f"All links are as {speed(links.inside)}.")
    else:
        told.append(
            f"{links.ranks_per_machine} ranks share a machine ({speed(links.inside)}); machines are joined by {speed(links.between)}."
        )
    if not on_gpu:
        told.append(
            "Messages take the time of the cores that compute: computing hides none of them, and in each a rank may wait for the slowest."
        )
    if options.parallel == "fsdp":
        told.append(
            "FSDP2 shards each block of the longest list of equal modules, and then the rest, with its default prefetch."
        )
    else:
        told.append("DDP has its default buckets of 25 MiB.")
    if training.parts.scaler is not None or training.parts.scheduler is not None:
        told.append("Scaler and scheduler are left out of the steps that are distributed.")
    return told


def speed(fitted: LinkFit) -> str:
    """A link in words.

    >>> speed(LinkFit(alpha_s=2e-5, beta_s=1e-9, error=0.1))
    '1000 MB/s and 20.0 µs a hop'
    """
    return f"{format_rate(fitted.bandwidth, 'B/s')} and {format_seconds(fitted.alpha_s)} a hop"
