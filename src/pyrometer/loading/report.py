"""How a training step gets its data: the stages, who waits for whom, and what follows."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pyrometer.advice import Advice
from pyrometer.loading.settings import LoaderSettings
from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.record import Record, doc

Where: TypeAlias = Literal["worker", "main", "pin thread", "device"]

LoadingVerdict: TypeAlias = Literal[
    "healthy", "balanced", "starved-steady", "bursty", "handover-bound", "slow-start", "serial", "no-loader"
]
"""What the loader does to the training, in a word.

- healthy: the data is there when it is asked for.
- balanced: it just is; a slightly faster step, or slower storage, would have to wait.
- starved-steady: every step waits, because the workers are at their limit.
- bursty: the workers would be fast enough on average, but batches come unevenly.
- handover-bound: taking batches over from the workers costs the training process more than waiting for them.
- slow-start: the start of the workers takes a good part of each epoch.
- serial: without workers, loading and computing take turns, and loading takes a good part.
- no-loader: the batches come from something other than a DataLoader.
"""


class StageTime(Record, frozen=True, kw_only=True):
    """One station on a batch's way, or one phase of the step."""

    name: Annotated[
        str,
        doc("fetch, decode, collate, wait, receive, pin, h2d, forward, backward, optimizer, rest"),
    ]
    where: Annotated[Where, doc("the process, thread or device that it keeps busy")]
    per_step_s: Annotated[Seconds, doc("mean time for the batches of one step, in one process")]
    share: Annotated[
        float,
        doc("of the step; those of the training process add up to one, workers do theirs at the same time"),
    ]
    cpu_share: Annotated[float | None, doc("of its time, on a CPU; null where that was not measured")] = None


class LoaderReport(Record, frozen=True, kw_only=True):
    """Where the data of a training step comes from, and whether the step waits for it."""

    verdict: LoadingVerdict
    sentence: Annotated[
        str, doc("the verdict with its figures; of the measured steps where their phases were timed")
    ]
    settings: Annotated[LoaderSettings, doc("of the loader, as found")]
    measured_step_s: Annotated[Seconds, doc("mean step, first batches of an epoch apart")]
    predicted_step_s: Annotated[
        Seconds | None, doc("from the parts alone: the slowest of workers, training process and CPUs")
    ] = None
    data_share: Annotated[float, doc("of the time of all steps, spent on getting batches")]
    wait_s: Annotated[Seconds, doc("mean time per step until its batches were there")]
    wait_fraction: Annotated[float, doc("median over the steps of the share that getting batches took")]
    first_batch_s: Annotated[
        Seconds, doc("until the first batch of an epoch was there; the median of several")
    ]
    free_data_ratio: Annotated[
        Ratio, doc("step without waiting over step as measured: what the best loader could bring")
    ]
    stages: list[StageTime] = []
    occupancy: Annotated[
        float | None,
        doc("mean share of the queue that was full when a batch was asked for; null without workers"),
    ] = None
    queue_batches: Annotated[int, doc("batches that the queue can hold")] = 0
    worker_busy: Annotated[
        float | None, doc("share of the time in which the workers made batches; null without workers")
    ] = None
    reads_bytes: Annotated[
        Bytes | None, doc("read from files per step, by system calls; null if not known")
    ] = None
    batch_bytes: Annotated[Bytes, doc("of one batch")] = 0
    worker_memory_bytes: Annotated[
        Bytes | None, doc("held by the workers alone: what they share with the training process is not in it")
    ] = None
    shm_needed_bytes: Annotated[Bytes, doc("shared memory for a full queue and the batch in use")] = 0
    shm_free_bytes: Annotated[
        Bytes | None, doc("shared memory that is free; null where there is no limit")
    ] = None
    start_method: Annotated[str | None, doc("fork, forkserver or spawn; null without a DataLoader")] = None
    epoch_batches: Annotated[int | None, doc("batches of an epoch; null where the loader cannot tell")] = None
    num_steps: Annotated[int, doc("steps that the figures are from")] = 0
    advice: list[Advice] = []
    notes: Annotated[list[str], doc("what limits these figures")] = []
