"""What policies would do to requests: each replayed many times, with intervals, and the one to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from pyrometer.quantity import Seconds, format_percent, format_seconds
from pyrometer.record import Record, doc
from pyrometer.serving.batching.policy import BatchPolicy
from pyrometer.serving.batching.service_times import Pace, ServicePoint
from pyrometer.serving.batching.waiting import Batch
from pyrometer.serving.planning.arrivals import Arrival, Arrivals, recorded
from pyrometer.serving.planning.interval import Interval, of_replays
from pyrometer.serving.planning.replay import Replayed, ServiceDraws, Shaped, replay
from pyrometer.serving.running.shaping import Shaping, padding_share, told, volume
from pyrometer.serving.running.signature import TensorSpec

REPLAYS = 40
LEAST_REPLAYS = 8
REQUESTS = 40_000
"""That are replayed per policy by default: 20 µs each."""
SHOWN = 100
"""Samples of a service time in the document."""
MOST_BUSY = 0.98
"""Beyond this share the queue only grows."""


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


class Trial(Record, frozen=True, kw_only=True):
    """Requests that the server got from a client here, before it is deployed."""

    num_requests: int
    span_s: Seconds
    p50_s: Annotated[Interval, doc("in queue and model")]
    p99_s: Interval


class Plan(Record, frozen=True, kw_only=True):
    """What `pyrometer serve --plan` found."""

    arrivals: Annotated[str, doc("where the requests come from")]
    num_requests: Annotated[int, doc("of one course")]
    rate: Annotated[float, doc("requests per second")]
    trial: Annotated[Trial, doc("the requests that were measured")]
    service: Annotated[list[ServicePoint], doc("service times in the server")]
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
        paces: how batches followed each other in a server; empty where their times are independent.
    """

    points: Sequence[ServicePoint]
    inputs: Sequence[TensorSpec]
    shaping: Shaping | None
    row_edges: Sequence[int]
    paces: Sequence[Pace] = ()


class Tried(NamedTuple):
    """The requests that a server got from itself, and what it took for them."""

    arrivals: Sequence[Arrival]
    trial: Trial


def plan(
    model: Model,
    arrivals: Arrivals,
    own: BatchPolicy,
    tried: Tried,
    *,
    seed: int = 0,
    requests: int = REQUESTS,
) -> Plan:
    """Replay requests through the policy of the settings and some others, about so many each.

    What the server took for some of them is known. Replays of these say what replays are off by, which is taken out of all others, too.
    """
    course = arrivals.draw(np.random.default_rng(seed), 0)

    def evaluated(some: Arrivals, num: int, name: str, policy: BatchPolicy, shapes: str) -> PolicyPlan:
        replays = min(REPLAYS, max(LEAST_REPLAYS, requests // max(num, 1)))
        return evaluate(model, some, policy, name=name, shapes=shapes, seed=seed, replays=replays)

    candidates = _candidates(own, model.shaping)
    again = evaluated(recorded(tried.arrivals), len(tried.arrivals), *candidates[0])
    found = [
        _corrected(evaluated(arrivals, len(course), *one), tried.trial, again, is_tried=one is candidates[0])
        for one in candidates
    ]
    best = _best(found)
    return Plan(
        arrivals=arrivals.text,
        num_requests=len(course),
        rate=len(course) / max(course[-1].at_s - course[0].at_s, 1e-9) if course else 0.0,
        trial=tried.trial,
        service=[msgspec.structs.replace(one, samples_s=_few(one.samples_s)) for one in model.points],
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
    draws = ServiceDraws(model.points, model.row_edges, model.paces)
    runs = [replay(arrivals.draw(random, number), policy, shaped, draws, random) for number in range(replays)]
    busy = float(np.median([run.busy_s / max(run.span_s, 1e-9) for run in runs]))
    refused = sum(run.num_refused for run in runs)
    asked = refused + sum(len(run.latencies_s) for run in runs)
    rows = sum(run.rows for run in runs)
    return PolicyPlan(
        name=name,
        policy=policy,
        shapes=shapes,
        p50_s=of_replays([_quantile(run, 0.5) for run in runs]),
        p99_s=of_replays([_quantile(run, 0.99) for run in runs]),
        throughput=of_replays([len(run.latencies_s) / max(run.span_s, 1e-9) for run in runs]),
        mean_rows=rows / max(sum(run.num_batches for run in runs), 1),
        padding_share=padding_share(sum(run.real for run in runs), sum(run.padded for run in runs)),
        busy_share=busy,
        refused_share=refused / max(asked, 1),
        keeps_up=not refused and busy < MOST_BUSY,
    )


def _corrected(found: PolicyPlan, trial: Trial, again: PolicyPlan, *, is_tried: bool) -> PolicyPlan:
    """Without what replays are off by, and as wide as stretches of the trial differ; what was not tried is as uncertain as its replays, too."""

    def corrected(replayed: Interval, known: Interval, of_trial: Interval) -> Interval:
        value = replayed.value * known.value / of_trial.value
        below, above = (
            math.hypot(math.log(known.value / end), 0.0 if is_tried else math.log(replayed.value / other))
            for end, other in ((known.low, replayed.low), (known.high, replayed.high))
        )
        return Interval(value=value, low=value * math.exp(-below), high=value * math.exp(above))

    return msgspec.structs.replace(
        found,
        p50_s=corrected(found.p50_s, trial.p50_s, again.p50_s),
        p99_s=corrected(found.p99_s, trial.p99_s, again.p99_s),
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

    def sizes(one: Arrival) -> tuple[int, ...]:
        return shaping.sizes_within(names, one.shapes)

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


def _few(samples_s: list[Seconds]) -> list[Seconds]:
    """At most so many as are worth showing, from the least to the most."""
    taken = sorted(samples_s)
    places = np.linspace(0, len(taken) - 1, min(len(taken), SHOWN))
    return [taken[round(place)] for place in places]


def _quantile(run: Replayed, share: float) -> float:
    return float(np.quantile(run.latencies_s, share)) if len(run.latencies_s) else float("nan")


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
