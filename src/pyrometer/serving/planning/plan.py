"""What policies would do to requests: each replayed many times, with intervals, and the one to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from scipy.stats import t as student

from pyrometer.quantity import Seconds, format_percent, format_seconds
from pyrometer.record import Record, doc
from pyrometer.serving.batching.policy import BatchPolicy
from pyrometer.serving.batching.service_times import Pace, Rest, ServicePoint
from pyrometer.serving.batching.waiting import Batch
from pyrometer.serving.planning.arrivals import Arrival, Arrivals
from pyrometer.serving.planning.replay import Replayed, ServiceDraws, Shaped, replay
from pyrometer.serving.running.shaping import Shaping, padding_share, told, volume
from pyrometer.serving.running.signature import TensorSpec

REPLAYS = 40
COVERAGE = 0.95
"""Of the intervals: that another course of the same kind lies within."""
LEAST_REPLAYS = 8
REQUESTS = 40_000
"""That are replayed per policy by default: 20 µs each."""
MOST_BUSY = 0.98
"""Beyond this share the queue only grows."""


class Interval(Record, frozen=True, kw_only=True):
    """A figure with what another course of the same kind may give."""

    value: float
    low: float
    high: float

    def holds(self, measured: float) -> bool:
        """Whether a measured figure is one of those that were to be expected."""
        return self.low <= measured <= self.high


class PolicyPlan(Record, frozen=True, kw_only=True):
    """One policy, and what it would do."""

    name: str
    policy: BatchPolicy
    shapes: Annotated[str, doc("buckets; longest: one queue, padded to the longest of a batch; or alike")]
    p50_s: Interval
    p99_s: Interval
    throughput: Annotated[Interval, doc("requests answered per second")]
    mean_rows: float
    padding_share: Annotated[float, doc("of what is computed")]
    busy_share: Annotated[float, doc("of the time of the model")]
    refused_share: Annotated[float, doc("of the requests")]
    keeps_up: Annotated[bool, doc("whether all requests are answered, and the queue does not grow for ever")]


class Plan(Record, frozen=True, kw_only=True):
    """What `pyrometer serve --plan` found."""

    arrivals: Annotated[str, doc("where the requests come from")]
    num_requests: Annotated[int, doc("of one course")]
    rate: Annotated[float, doc("requests per second")]
    handoff_s: Annotated[Seconds, doc("that passing a batch to the thread of the model takes, and back")]
    service: Annotated[list[ServicePoint], doc("measured service times")]
    policies: Annotated[list[PolicyPlan], doc("the one of the settings first")]
    recommended: Annotated[str, doc("name of a policy")]
    sentence: str


class Model(NamedTuple):
    """What a plan knows of the model.

    Attributes:
        points: service times.
        inputs: of requests.
        shaping: buckets, where there are some.
        row_edges: numbers of rows that it is called with.
        handoff_s: that passing a batch to its thread takes, and back, beside the service time.
        course: how batches followed each other in a server; empty where their times are independent.
        rests: what a rested model takes longer; empty where the service times have it in them.
    """

    points: Sequence[ServicePoint]
    inputs: Sequence[TensorSpec]
    shaping: Shaping | None
    row_edges: Sequence[int]
    handoff_s: Seconds
    course: Sequence[Pace] = ()
    rests: Sequence[Rest] = ()


def plan(
    model: Model, arrivals: Arrivals, own: BatchPolicy, *, seed: int = 0, requests: int = REQUESTS
) -> Plan:
    """Replay requests through the policy of the settings and some others, about so many each."""
    course = arrivals.draw(np.random.default_rng(seed), 0)
    replays = min(REPLAYS, max(LEAST_REPLAYS, requests // max(len(course), 1)))
    found = [
        evaluate(model, arrivals, policy, name=name, shapes=shapes, seed=seed, replays=replays)
        for name, policy, shapes in _candidates(own, model.shaping)
    ]
    best = _best(found)
    return Plan(
        arrivals=arrivals.text,
        num_requests=len(course),
        rate=len(course) / max(course[-1].at_s - course[0].at_s, 1e-9) if course else 0.0,
        handoff_s=model.handoff_s,
        service=list(model.points),
        policies=found,
        recommended=best.name,
        sentence=_sentence(best, found[0]),
    )


def evaluate(
    model: Model,
    arrivals: Arrivals,
    policy: BatchPolicy,
    *,
    name: str,
    shapes: str,
    seed: int = 0,
    replays: int = REPLAYS,
) -> PolicyPlan:
    """What one policy would do."""
    random = np.random.default_rng(seed)
    shaped = _shaped(model, shapes)
    draws = ServiceDraws(model.points, model.row_edges, model.course, model.rests)
    runs = [
        replay(arrivals.draw(random, number), policy, shaped, draws, random, handoff_s=model.handoff_s)
        for number in range(replays)
    ]
    busy = float(np.median([run.busy_s / max(run.span_s, 1e-9) for run in runs]))
    refused = sum(run.num_refused for run in runs)
    asked = refused + sum(len(run.latencies_s) for run in runs)
    rows = sum(run.rows for run in runs)
    return PolicyPlan(
        name=name,
        policy=policy,
        shapes=shapes,
        p50_s=_interval([_quantile(run, 0.5) for run in runs]),
        p99_s=_interval([_quantile(run, 0.99) for run in runs]),
        throughput=_interval([len(run.latencies_s) / max(run.span_s, 1e-9) for run in runs]),
        mean_rows=rows / max(sum(run.num_batches for run in runs), 1),
        padding_share=padding_share(sum(run.real for run in runs), sum(run.padded for run in runs)),
        busy_share=busy,
        refused_share=refused / max(asked, 1),
        keeps_up=not refused and busy < MOST_BUSY,
    )


def _candidates(own: BatchPolicy, shaping: Shaping | None) -> list[tuple[str, BatchPolicy, str]]:
    shapes = "alike" if shaping is None else "buckets"
    rows = own.most_rows
    found = [("as set", own, shapes)]
    for name, flush_idle, wait_s, most in (
        ("at once", True, own.wait_s, rows),
        ("at once, smaller batches", True, own.wait_s, max(1, rows // 4)),
        ("wait 2 ms", False, 0.002, rows),
        ("wait 10 ms", False, 0.010, rows),
    ):
        policy = msgspec.structs.replace(own, flush_idle=flush_idle, wait_s=wait_s, most_rows=most)
        if policy != own:
            found.append((name, policy, shapes))
    found.append(("no batching", msgspec.structs.replace(own, most_rows=1, flush_idle=True), shapes))
    if shaping is not None:
        found.append(("as set, padded to the longest", own, "longest"))
    return found


def _shaped(model: Model, shapes: str) -> Shaped:
    shaping = model.shaping
    if shaping is None:
        return Shaped(lambda _: "", lambda _: ("", 1.0), lambda _: 1.0)
    names = [spec.name for spec in model.inputs]
    largest = shaping.edges()[0]

    def sizes(one: Arrival) -> tuple[int, ...]:
        if not one.shapes:
            return largest
        found = shaping.sizes_of(names, one.shapes)
        return tuple(min(size, most) for size, most in zip(found, largest, strict=True))

    def longest(batch: Batch) -> tuple[str, float]:
        most = tuple(map(max, zip(*(sizes(one.payload) for one in batch.requests), strict=True)))
        return told(shaping.bucket(most)), float(volume(most))

    def own(batch: Batch) -> tuple[str, float]:
        bucket = shaping.bucket(sizes(batch.requests[0].payload))
        return told(bucket), float(volume(bucket))

    def real(one: Arrival) -> float:
        return float(volume(sizes(one)))

    if shapes == "longest":
        return Shaped(lambda _: "", longest, real)
    return Shaped(lambda one: told(shaping.bucket(sizes(one))), own, real)


def _quantile(run: Replayed, share: float) -> float:
    return float(np.quantile(run.latencies_s, share)) if len(run.latencies_s) else float("nan")


def _interval(values: list[float]) -> Interval:
    """What one more course gives, from so few: by the spread of their logarithms, and at least from the least to the most that was seen."""
    seen = np.array([value for value in values if value > 0])
    low, high = min(values), max(values)
    if len(seen) == len(values) > 1:
        logs = np.log(seen)
        reach = (
            student.isf((1 - COVERAGE) / 2, len(logs) - 1) * logs.std(ddof=1) * math.sqrt(1 + 1 / len(logs))
        )
        low, high = min(low, math.exp(logs.mean() - reach)), max(high, math.exp(logs.mean() + reach))
    return Interval(value=float(np.median(values)), low=float(low), high=float(high))


def _best(found: Sequence[PolicyPlan]) -> PolicyPlan:
    """The least P99 of those that keep up, and where intervals do not tell them apart the least P50; what is set wins a tie."""
    keeping = [one for one in found if one.keeps_up] or [min(found, key=lambda one: one.refused_share)]
    least = min(keeping, key=lambda one: one.p99_s.value)
    equal = [one for one in keeping if one.p99_s.low <= least.p99_s.high]
    best = min(equal, key=lambda one: one.p50_s.value)
    own = found[0]
    return own if own in equal and own.p50_s.low <= best.p50_s.high else best


def _sentence(best: PolicyPlan, own: PolicyPlan) -> str:
    tail = f"P99 {format_seconds(best.p99_s.value)} ({format_seconds(best.p99_s.low)} to {format_seconds(best.p99_s.high)})"
    busy = f"the model is busy {format_percent(best.busy_share)} of the time"
    if not best.keeps_up:
        return f"no policy keeps up: {busy}; add a replica, or make the model faster with `pyrometer tune`"
    if best is own:
        return f"what is set is as good as any: {tail}; {busy}"
    return f"take '{best.name}': {tail} against {format_seconds(own.p99_s.value)} as set; {busy}"
