"""How often a rollout takes back a version that is like the old one, and how early it takes back one that is worse.

Run on simulated traffic: latency is lognormal with a rare pause of 30 ms, 0.2 % of requests fail, and load swings. The controller looks
every 250 observations. Beside it, on the same counts, a Welch test of the latency that is looked at as often.

    python benchmarks/rollout.py                # 400 ramps per case, about ten minutes
    python benchmarks/rollout.py --ramps 20     # to try
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from fnmatch import fnmatch
from typing import NamedTuple

import numpy as np

from pyrometer.histogram import Histogram
from pyrometer.rollout.counts import ERRORS, LATENCY, Counts, add_counts, bucket_end, level_of
from pyrometer.rollout.judging import events, replicas
from pyrometer.rollout.judging.judge import judge
from pyrometer.rollout.judging.level import difference
from pyrometer.rollout.judging.replicas import calm_blocks
from pyrometer.rollout.observed import NEW, OLD, Epoch, Observed, Reported, observed
from pyrometer.rollout.plan import Plan, default_metrics
from pyrometer.rollout.state import start, step

LOOK = 250
MOST = 400_000
MOST_BLOCKS = 360
LOOK_BLOCKS = 10
SPREAD = 0.35
MEDIAN_S = 0.010
THRESHOLDS = {"p50": 0.010, "p95": 0.0178, "p99": 0.0235}


class Case(NamedTuple):
    """What the new version is like."""

    name: str
    slower: float = 1.0
    error_factor: float = 1.0
    error_rate: float = 0.002
    tail: float = 0.0  # share of its requests that take 25 ms more


class Ramp(NamedTuple):
    """How one rollout ended."""

    status: str
    share: float  # the largest that the new version had
    num: int
    peeked: bool  # whether the peeked test found a difference


def plan_of(assignment: str = "batch") -> Plan:
    thresholds = {name: bucket_end(value) for name, value in THRESHOLDS.items()}
    return Plan(
        name="simulated", old="v1", new="v2", metrics=default_metrics(thresholds), min_s=0.0, min_samples=200,
        deadline_s=1e9, assignment=assignment, max_failures=10**6, most_blocks=MOST_BLOCKS,
    )  # fmt: skip


def draw(rng: np.random.Generator, num: int, case: Case | None, load: np.ndarray | float) -> Counts:
    logs = np.log(MEDIAN_S) + rng.normal(0, SPREAD, num) + load
    latency = np.exp(logs) * (case.slower if case else 1.0)
    latency += np.where(rng.random(num) < 0.003, rng.exponential(0.030, num), 0.0)
    if case is not None and case.tail:
        latency += np.where(rng.random(num) < case.tail, 0.025, 0.0)
    rate = (case or Case("")).error_rate * (case.error_factor if case else 1.0)
    failed = int((rng.random(num) < rate).sum())
    return Counts(num=num, events={ERRORS: failed}, values={LATENCY: Histogram.of(latency).counts})


def ramp(case: Case, seed: int) -> Ramp:
    """One rollout, where chance assigns each observation."""
    rng = np.random.default_rng(seed)
    state, _ = start(plan_of(), 0.0, "benchmark")
    counts = [[Counts(), Counts()]]
    peeked, num, load = False, 0, 0.0
    while not state.has_ended and num < MOST:
        load = 0.99 * load + rng.normal(0, 0.02)
        to_new = int(rng.binomial(LOOK, state.share))
        for side, (size, what) in enumerate(((to_new, case), (LOOK - to_new, case._replace(
            slower=1.0, error_factor=1.0, tail=0.0)))):  # fmt: skip
            counts[-1][side] = add_counts([counts[-1][side], draw(rng, size, what, load)])
        num += LOOK
        epochs = [
            Epoch(share=w, new=new, old=old) for w, (new, old) in zip(state.shares, counts, strict=True)
        ]
        judged = judge(state.plan, Observed(epochs=epochs), next_share=state.next_share)
        peeked = peeked or _peeked(counts)
        state, _ = step(state, judged, num / 1000)
        while len(counts) < len(state.shares):
            counts.append([Counts(), Counts()])
    return Ramp(
        state.status, max(state.shares[: len(state.shares) - (state.status == "rolled back")]), num, peeked
    )


def _peeked(counts: list[list[Counts]]) -> bool:
    levels = [(level_of(new.buckets(LATENCY)), level_of(old.buckets(LATENCY))) for new, old in counts]
    found = difference(levels)
    return found is not None and found.p_value < 0.05 and found.mean > 0


def ramp_of_replicas(case: Case, seed: int, *, rho: float, replicas: int = 3, per_block: int = 1000) -> Ramp:
    """One rollout on replicas with noise of their own, correlated from request to request, until it waits for somebody."""
    _KNOWN.clear()
    rng = np.random.default_rng(seed)
    state, _ = start(plan_of("replicas"), 0.0, "benchmark")
    offsets, levels = rng.normal(0, 0.05, 2 * replicas), rng.normal(0, 0.2, 2 * replicas)
    reports: list[Reported] = []
    block = 0
    while not state.has_ended and state.status != "waiting":
        for replica in range(2 * replicas):
            noise, levels[replica] = _correlated(rng, levels[replica], per_block, rho)
            arm = OLD if replica < replicas else NEW
            what = (
                case if arm == NEW and state.epoch else case._replace(slower=1.0, error_factor=1.0, tail=0.0)
            )
            counts = draw(rng, per_block, what, noise + offsets[replica])
            reports.append(
                Reported(epoch=state.epoch, arm=arm, reporter=f"r{replica}", block=block, counts=counts)
            )
        block += 1
        if block % LOOK_BLOCKS:
            continue
        seen = observed(state.shares, reports, keep_reports=True)
        judged = judge(state.plan, seen, next_share=state.next_share)
        state, _ = step(state, judged, float(block), calm_blocks=calm_blocks(state.plan, reports))
    return Ramp(
        state.status,
        max(state.shares[: len(state.shares) - (state.status == "rolled back")]),
        block * per_block,
        False,
    )


_KNOWN: dict[tuple[int, tuple[float, ...]], tuple[object, object]] = {}


def remembering(read: Callable[..., object]) -> Callable[..., object]:
    """What a controller reads of a histogram at every look is the same each time, and here the same object."""

    def remembered(buckets: dict[int, int], *more: float) -> object:
        key = (id(buckets), more)
        if key not in _KNOWN:
            _KNOWN[key] = (read(buckets, *more), buckets)
        return _KNOWN[key][0]

    return remembered


replicas.level_of = remembering(replicas.level_of)  # type: ignore[assignment]
events.num_above = remembering(events.num_above)  # type: ignore[assignment]


def _correlated(rng: np.random.Generator, level: float, num: int, rho: float) -> tuple[np.ndarray, float]:
    from scipy.signal import lfilter

    steps = rng.normal(0, 0.2 * math.sqrt(1 - rho**2), num)
    noise, _ = lfilter([1.0], [1.0, -rho], steps, zi=[rho * level])
    return noise, float(noise[-1])


def tell(name: str, ramps: list[Ramp], elapsed_s: float) -> None:
    count = {
        status: sum(one.status == status for one in ramps)
        for status in ("promoted", "rolled back", "waiting", "running", "calm")
    }
    early = sum(one.status == "rolled back" and one.share < 0.25 for one in ramps)
    nums = sorted(one.num for one in ramps)
    print(
        f"{name:34} {count['promoted']:4} promoted {count['rolled back']:4} rolled back ({early} before 25 %) "
        f"{count['waiting']:3} not proved {count['running'] + count['calm']:3} open   median {nums[len(nums) // 2]:7,} max {nums[-1]:7,} observations   "
        f"peeked test {sum(one.peeked for one in ramps) / len(ramps):6.1%}   {elapsed_s:.0f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ramps", type=int, default=400)
    parser.add_argument("--only", default="*", help="cases by their names, such as 'A/A*'")
    parser.add_argument("--first", type=int, default=0, help="seed of the first ramp")
    options = parser.parse_args()
    cases: list[tuple[str, Callable[[int], Ramp]]] = [
        (case.name, lambda seed, case=case: ramp(case, seed))
        for case in (
            Case("A/A"),
            Case("+10 % latency", slower=1.10),
            Case("errors x 3", error_factor=3.0),
            Case("2 % of requests +25 ms", tail=0.02),
            Case("+5 % latency", slower=1.05),
            Case("20 % faster", slower=0.8),
        )
    ]
    cases += [
        (f"A/A, replicas, rho {rho}", lambda seed, rho=rho: ramp_of_replicas(Case("A/A"), seed, rho=rho))
        for rho in (0.9, 0.99, 0.999)
    ]
    cases.append(
        ("+10 %, replicas, rho 0.99", lambda seed: ramp_of_replicas(Case("", slower=1.1), seed, rho=0.99))
    )
    for name, run in cases:
        if fnmatch(name, options.only):
            began = time.perf_counter()
            tell(
                name,
                [run(options.first + seed) for seed in range(options.ramps)],
                time.perf_counter() - began,
            )


if __name__ == "__main__":
    main()
