"""What of a sample is the same each time: the same samples fetched again, with other random numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from pyrometer.loading.profiling.fetching import Budget, Clocks, Fetched, fetch_samples
from pyrometer.loading.profiling.leaves import fingerprint, num_bytes_of
from pyrometer.loading.profiling.pipeline import Passages, Pipeline, find_pipeline
from pyrometer.loading.profiling.record import PipelineStage, RepeatedWork
from pyrometer.loading.profiling.source import Source
from pyrometer.quantity import Bytes, Seconds

NUM_REPEATED = 16
MAX_ROUNDS = 4


@dataclass(frozen=True)
class Look:
    """One fetch of a sample: fingerprints, times and bytes of what came out of each stage, and of the whole."""

    whole: bytes | None
    num_bytes: Bytes
    seconds: Seconds
    stages: list[tuple[bytes | None, Seconds, Bytes]]


def repeated_work(
    source: Source, keys: Sequence[Any], first: Sequence[bytes | None], budget: Budget, clocks: Clocks
) -> RepeatedWork | None:
    """Fetch the samples that were fetched first once more, several times, each time with other random numbers.

    Random state is the caller's to restore. Where the dataset applies a pipeline of transforms, each step is watched, and the
    longest part from the start that gives the same every time is found. A step that calls itself random counts as random
    however it came out.

    Args:
        source: the dataset.
        keys: what was asked for first, at least as many as `first`.
        first: fingerprints of what came.
        budget: at least one sample is fetched, then as many as it allows.
        clocks: of the timings.
    """
    pipeline = find_pipeline(source.dataset)
    looks: list[list[Look]] = [[] for _ in first]
    for number in range(1, MAX_ROUNDS + 1):
        if number > 1 and budget.left_s <= 0:
            break
        for place, look in enumerate(_round(source, pipeline, keys[: len(first)], number, budget, clocks)):
            looks[place].append(look)
    same = [
        None not in {one, look.whole} and look.whole == one
        for one, again in zip(first, looks, strict=True)
        for look in again
    ]
    if not same:
        return None
    seen = [look for again in looks for look in again]
    stages = _stages(pipeline, looks)
    num_same = next((number for number, stage in enumerate(stages) if not stage.same), len(stages))
    work = RepeatedWork(
        num_comparisons=len(same),
        unseen_below=min(1.0, 3 / len(same)),
        same_share=float(np.mean(same)),
        sample_s=float(np.median([look.seconds for look in seen])),
        stages=stages,
        num_same_stages=num_same,
    )
    return _with_cache(work, source, int(np.mean([look.num_bytes for look in seen])))


def _round(  # noqa: PLR0917
    source: Source, pipeline: Pipeline | None, keys: Sequence[Any], seed: int, budget: Budget, clocks: Clocks
) -> list[Look]:
    looks: list[Look] = []
    with pipeline.watched() if pipeline else contextlib.nullcontext(Passages()) as passages:
        start = clocks.wall()
        for fetched in fetch_samples(source, keys, budget, clocks, seed=seed):
            looks.append(_look(fetched, passages, len(pipeline.steps) if pipeline else 0, start))
            passages.steps, passages.taken, passages.own_s = [], None, 0.0
            start = clocks.wall()
    return looks


def _look(fetched: Fetched, passages: Passages, num_steps: int, start: Seconds) -> Look:
    seconds = max(0.0, fetched.wall_s - passages.own_s)
    look = Look(fingerprint(fetched.sample), num_bytes_of(fetched.sample), seconds, [])
    in_order = [passage.step for passage in passages.steps] == list(range(num_steps))
    if not num_steps or not in_order or passages.taken is None:
        return look
    steps = [(step.given, step.seconds, step.num_bytes) for step in passages.steps]
    given, num_bytes = passages.taken
    before = min(seconds, max(0.0, passages.steps[0].start_s - start))
    rest = max(0.0, seconds - before - sum(passage.seconds for passage in passages.steps))
    look.stages.extend([(given, before, num_bytes), *steps, (look.whole, rest, look.num_bytes)])
    return look


def _stages(pipeline: Pipeline | None, looks: Sequence[Sequence[Look]]) -> list[PipelineStage]:
    """Stages of the pipeline, where every sample passed through all of them once and in order, and was fetched twice."""
    seen = [look for again in looks for look in again]
    if (
        pipeline is None
        or not seen
        or not all(look.stages for look in seen)
        or all(len(again) < 2 for again in looks)
    ):
        return []
    names = ["load", *pipeline.names, "rest"]
    stages = []
    for number, name in enumerate(names):
        columns = [[look.stages[number] for look in again] for again in looks]
        declared = 0 < number <= len(pipeline.steps) and pipeline.is_random(number - 1)
        stages.append(
            PipelineStage(
                name=name,
                median_s=float(np.median([one[1] for column in columns for one in column])),
                same=not declared and all(_alike([one[0] for one in column]) for column in columns),
                num_bytes=int(np.mean([one[2] for column in columns for one in column])),
            )
        )
    return stages


def _alike(prints: Sequence[bytes | None]) -> bool:
    return not prints or (None not in prints and len(set(prints)) == 1)


def _with_cache(work: RepeatedWork, source: Source, sample_bytes: Bytes) -> RepeatedWork:
    """The same with what a cache of the part that repeats would save and take."""
    random_step = work.num_same_stages < len(work.stages)
    if work.same_share == 1.0 and not random_step:
        same_s, cached = work.sample_s, sample_bytes
    elif work.num_same_stages:
        kept = work.stages[: work.num_same_stages]
        same_s = min(work.sample_s, sum(stage.median_s for stage in kept))
        cached = kept[-1].num_bytes or 0
    elif work.stages:
        same_s, cached = 0.0, 0
    else:
        return work
    length = source.num_samples
    return msgspec.structs.replace(
        work,
        same_s=same_s,
        cached_bytes=cached,
        cached_total_bytes=None if length is None else cached * length,
    )
