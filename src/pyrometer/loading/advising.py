"""What to change about a loader, from what was seen. Pure; each advice is a function, and says nothing where it does not fit."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pyrometer.advice import Advice
from pyrometer.loading.epochs import epoch_step_s, steps_per_epoch
from pyrometer.loading.model import LoaderModel, modelled
from pyrometer.loading.report import LoaderReport
from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.stages import LoadingPass
from pyrometer.loading.verdict import HEALTHY, LONG_START
from pyrometer.quantity import Seconds, counted, format_bytes, format_percent, format_seconds, significant

MAX_WORKERS, MIN_MOST, WORKERS_PER_CPU = 32, 8, 4
"""No more workers are advised than four per CPU, but eight on the smallest machine, and 32 on the largest."""

TOLERANCE = 0.02
"""A number of workers is as good as a larger one whose predicted step is shorter by no more than this share."""

MANY_THREADS = 1.3
WORTH_HAVING = 0.03
"""A predicted gain below this share of the step is not worth a word."""


def advise(report: LoaderReport, seen: LoadingPass) -> list[Advice]:
    """Every change that fits, the largest gain first; those without a predicted gain last."""
    found = [advice for check in CHECKS if (advice := check(report, seen)) is not None]
    return sorted(found, key=lambda advice: -advice.saves_s)


def _more_workers(report: LoaderReport, seen: LoadingPass) -> Advice | None:
    model, now = seen.model, seen.settings
    if report.verdict not in {"serial", "starved-steady"} or model is None or seen.start.refused:
        return None
    wanted, step_s = _best_workers(model, report.epoch_batches, seen)
    start_s = 0.0 if now.persistent_workers else seen.start.of(now.num_workers)
    is_apart = not all(step.is_start for step in seen.steps)
    per_epoch = steps_per_epoch(report.epoch_batches, seen.pulls_per_step)
    now_s = report.measured_step_s + (start_s / per_epoch if is_apart and per_epoch else 0.0)
    if wanted.num_workers <= now.num_workers or now_s - step_s < WORTH_HAVING * now_s:
        return None
    cpu = model.batch_cpu_s / max(model.batch_s, 1e-12)
    kept = wanted.persistent_workers and not now.persistent_workers
    return Advice(
        slug="more-workers",
        fix_class="semantic",
        lever="num_workers",
        title=f"load with {counted(wanted.num_workers, 'worker')}{', kept between epochs' if kept else ''}",
        why=f"a batch takes {format_seconds(model.batch_s)} to make, {_on_cpu(cpu)}, and the step without "
        f"data {format_seconds(model.compute_s)}{_start_of(report, seen)}",
        rewrite=wanted.keywords,
        effect=_effect_of(wanted, seen, kept=kept),
        gain=modelled(now_s - step_s),
    )


def _on_cpu(cpus: float) -> str:
    """How much of the time to make a batch ran on a CPU; on several where samples use operators with threads.

    >>> _on_cpu(0.25), _on_cpu(1.13)
    ('25 % of it on a CPU', 'on 1.1 CPUs')
    """
    return f"{format_percent(cpus, 2)} of it on a CPU" if cpus <= 1 else f"on {significant(cpus, 2)} CPUs"


def _best_workers(
    model: LoaderModel, batches: int | None, seen: LoadingPass
) -> tuple[LoaderSettings, Seconds]:
    """The smallest number of workers that is about as fast as any, and the step with it; kept ones only where that matters."""
    now, most = seen.settings, min(MAX_WORKERS, max(MIN_MOST, int(WORKERS_PER_CPU * seen.cpus)))
    counts = range(now.num_workers, min(most, batches or most) + 1) or [now.num_workers]
    best: tuple[LoaderSettings, Seconds] | None = None
    # Whether to keep workers that are there already is an advice of its own.
    for kept in [now.persistent_workers] if now.num_workers or not batches else [False, True]:
        steps = {
            count: model.step_s(count)
            if not count
            else epoch_step_s(
                model,
                count,
                batches,
                per_step=seen.pulls_per_step,
                start_s=0.0 if kept else seen.start.of(count),
            )
            for count in counts
        }
        least_s = min(steps.values())
        count = min(count for count, step_s in steps.items() if step_s <= least_s * (1 + TOLERANCE))
        settings = msgspec.structs.replace(now.with_workers(count), persistent_workers=kept and count > 0)
        if best is None or steps[count] < best[1] * (1 - WORTH_HAVING):
            best = settings, steps[count]
    return best or (now, model.step_s(now.num_workers))


def _start_of(report: LoaderReport, seen: LoadingPass) -> str:
    if seen.tried is None or report.epoch_batches is None:
        return ""
    start = format_seconds(seen.tried.of(1))
    return (
        f"; to start and end a worker takes {start}, for an epoch of {counted(report.epoch_batches, 'batch')}"
    )


def _effect_of(wanted: LoaderSettings, seen: LoadingPass, *, kept: bool) -> str:
    more = counted(wanted.num_workers - seen.settings.num_workers, "process")
    parts = [f"batches are made while the step runs; costs {more} more with their memory"]
    if kept:
        parts.append("what the program changes in the dataset between epochs no longer reaches the workers")
    if wanted.num_workers > seen.cpus:
        parts.append(
            f"torch warns that there are only {seen.cpus:g} CPUs, which waiting for storage does not need"
        )
    return "; ".join(parts)


def _cheaper_samples(report: LoaderReport, seen: LoadingPass) -> Advice | None:
    model = seen.model
    if report.verdict not in {"serial", "starved-steady"} or model is None:
        return None
    best_s = min(model.step_s(count) for count in range(MAX_WORKERS + 1))
    over_s = best_s - model.compute_with_receive_s
    if over_s < 0.2 * best_s:
        return None
    return Advice(
        slug="cheaper-samples",
        fix_class="semantic",
        title="make each sample cheaper",
        why=f"a batch takes {format_seconds(model.batch_cpu_s)} of CPU time; {model.cpus:g} CPUs make no more than one per "
        f"{format_seconds(model.batch_cpu_s / model.cpus)}, however many workers there are",
        effect="decode once and store the result (np.save, torch.save), decode smaller, or move work to the device: the only "
        "change that helps once all CPUs are busy; costs disk space or preparation",
        gain=modelled(over_s),
    )


def _deeper_queue(report: LoaderReport, seen: LoadingPass) -> Advice | None:
    now = seen.settings
    if report.verdict != "bursty":
        return None
    deeper = msgspec.structs.replace(now, prefetch_factor=4 * (now.prefetch_factor or 1))
    extra = (deeper.capacity - now.capacity) * report.batch_bytes
    return Advice(
        slug="deeper-queue",
        fix_class="exact",
        lever="prefetch_factor",
        title=f"let each worker prepare {deeper.prefetch_factor} batches",
        why=f"the workers are fast enough on average, but the queue of {now.capacity} batches runs empty: single batches take far "
        "longer than others",
        rewrite=deeper.keywords,
        effect=f"slow batches are absorbed; costs {format_bytes(extra)} of shared memory",
    )


def _keep_workers(report: LoaderReport, seen: LoadingPass) -> Advice | None:
    now, batches = seen.settings, report.epoch_batches
    if not now.num_workers or now.persistent_workers or not batches:
        return None
    epoch_s = report.first_batch_s + batches * report.measured_step_s
    if report.first_batch_s < LONG_START * epoch_s:
        return None
    keeping = msgspec.structs.replace(now, persistent_workers=True)
    return Advice(
        slug="persistent-workers",
        fix_class="semantic",
        lever="persistent_workers",
        title="keep the workers between epochs",
        why=f"an epoch of {batches:,} batches waits {format_seconds(report.first_batch_s)} for its workers to start",
        rewrite=keeping.keywords,
        effect="workers start once; what the program changes in the dataset between epochs no longer reaches them",
        # The first batch must be made all the same.
        gain=modelled(now.num_workers * seen.start.each_s / batches) if seen.costs else None,
    )


def _no_workers(report: LoaderReport, seen: LoadingPass) -> Advice | None:
    model, now = seen.model, seen.settings
    if not now.num_workers or model is None:
        return None
    saves_s = report.measured_step_s - model.step_s(0)
    if saves_s < WORTH_HAVING * report.measured_step_s or report.data_share < HEALTHY:
        return None
    return Advice(
        slug="no-workers",
        fix_class="semantic",
        lever="num_workers",
        title="load in the training process",
        why=f"making a batch takes {format_seconds(model.data_s(0))}, getting it from a worker {format_seconds(report.wait_s)}",
        rewrite=now.with_workers(0).keywords,
        effect="no process, no queue and no copy between them; prefetch_factor, persistent_workers, timeout and "
        "multiprocessing_context go with the workers",
        gain=modelled(saves_s),
    )


def _fewer_workers(report: LoaderReport, seen: LoadingPass) -> Advice | None:
    model, now = seen.model, seen.settings
    if report.verdict != "healthy" or now.num_workers < 2 or model is None:
        return None
    # Half as much again as is needed, so that an uneven stream does not wait at once.
    enough = next(
        n
        for n in range(1, now.num_workers + 1)
        if 1.5 * model.data_s(n) <= model.compute_s or n == now.num_workers
    )
    if enough > now.num_workers / 2:
        return None
    freed = (report.worker_memory_bytes or 0) * (1 - enough / now.num_workers)
    return Advice(
        slug="fewer-workers",
        fix_class="semantic",
        lever="num_workers",
        title=f"{counted(enough, 'worker')} would do",
        why=f"a batch takes {format_seconds(model.batch_s)} to make and the step {format_seconds(model.compute_s)}; "
        f"{counted(now.num_workers, 'worker')} are idle most of the time",
        rewrite=now.with_workers(enough).keywords,
        effect=f"the same step with about {format_bytes(freed)} less memory, and a sooner first batch",
    )


def _fewer_threads(_report: LoaderReport, seen: LoadingPass) -> Advice | None:
    dataset_s = sum(cost.dataset_s for cost in seen.costs)
    cpu_s = sum(cost.cpu_s for cost in seen.costs)
    if seen.settings.num_workers < 2 or dataset_s <= 0 or cpu_s < MANY_THREADS * dataset_s:
        return None
    return Advice(
        slug="one-thread-per-worker",
        fix_class="tolerance",
        title="let each worker decode with one thread",
        why=f"each of {seen.settings.num_workers} workers keeps {cpu_s / dataset_s:.1f} CPUs busy; there are {seen.cpus:g}",
        effect="by cv2.setNumThreads(0) or threadpoolctl.threadpool_limits(1) in a worker_init_fn, or OMP_NUM_THREADS=1 before "
        "the start; workers do not take CPUs from each other; torch's own threads are limited in workers already",
    )


def _pinned(report: LoaderReport, seen: LoadingPass) -> Advice | None:
    copying = next((stage for stage in report.stages if stage.name == "h2d"), None)
    if seen.device != "cuda" or seen.settings.pin_memory or copying is None or copying.share < WORTH_HAVING:
        return None
    pinned = LoaderSettings(**{**msgspec.structs.asdict(seen.settings), "pin_memory": True})
    return Advice(
        slug="pin-memory",
        fix_class="semantic",
        lever="pin_memory",
        title="pin the batches",
        why=f"copying the batch to the device takes {format_seconds(copying.per_step_s)} per step, from pageable memory",
        rewrite=pinned.keywords,
        effect="with tensor.to(device, non_blocking=True) the copy is faster and need not be waited for; costs page-locked host "
        "memory",
    )


def _room_in_shared_memory(report: LoaderReport, _seen: LoadingPass) -> Advice | None:
    free = report.shm_free_bytes
    if free is None or report.shm_needed_bytes <= free / 2:
        return None
    return Advice(
        slug="shared-memory",
        fix_class="exact",
        title="give the container more shared memory",
        why=f"a full queue needs {format_bytes(report.shm_needed_bytes)} in /dev/shm, where {format_bytes(free)} are free",
        effect=f"with --shm-size={-(-2 * report.shm_needed_bytes // 2**20)}m, or a smaller prefetch_factor, workers do not die of a "
        "bus error when the queue fills",
    )


CHECKS: tuple[Callable[[LoaderReport, LoadingPass], Advice | None], ...] = (
    _more_workers,
    _cheaper_samples,
    _deeper_queue,
    _keep_workers,
    _no_workers,
    _fewer_workers,
    _fewer_threads,
    _pinned,
    _room_in_shared_memory,
)
