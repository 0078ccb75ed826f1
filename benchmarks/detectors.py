"""Delay and false alarms of every detector of latency, on labelled streams.

Two sets of streams: `tuning`, on which the defaults were chosen, and `judging`, of other shapes of noise, on which no default was
changed afterwards. A stream is stationary (each alarm is false), or has a step of +10, +20 or +50 % after a warm-up.

    python benchmarks/detectors.py [--runs 20] [--requests 100000] [--set judging] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator

import numpy as np

from pyrometer.monitor.detecting.alarm import Alarm
from pyrometer.monitor.detecting.detector import Floats, make_detector
from pyrometer.monitor.detecting.watch import Guard, Watch, latency_guards

RATE_PER_S = 1000
WARM_UP = 8000
AFTER = 4000
TICK = 100  # requests per look: a tenth of a second
Noise = Callable[[np.random.Generator, int], Floats]


def lognormal_with_spikes(rng: np.random.Generator, n: int) -> Floats:
    spikes = (rng.random(n) < 0.003) * rng.exponential(0.03, n)
    return 0.010 * np.exp(rng.normal(0, 0.35, n)) + spikes


def slow_swing(rng: np.random.Generator, n: int) -> Floats:
    return lognormal_with_spikes(rng, n) * (1 + 0.1 * np.sin(np.arange(n) * 2 * np.pi / 50_000))


def gamma_with_pareto(rng: np.random.Generator, n: int) -> Floats:
    tail = (rng.random(n) < 0.005) * 0.02 * rng.pareto(1.5, n)
    return 0.002 + rng.gamma(6, 0.0012, n) + tail


def student_log(rng: np.random.Generator, n: int) -> Floats:
    return 0.004 * np.exp(0.22 * rng.standard_t(3, n))


def two_shapes(rng: np.random.Generator, n: int) -> Floats:
    base = np.where(rng.random(n) < 0.25, 0.016, 0.010)
    return base * np.exp(rng.normal(0, 0.2, n))


def bursts_of_pauses(rng: np.random.Generator, n: int) -> Floats:
    """A garbage collection every few seconds holds up some twenty requests in a row."""
    latency = 0.006 * np.exp(rng.normal(0, 0.3, n))
    for start in np.flatnonzero(rng.random(n) < 1 / 4000):
        latency[start : start + 20] += 0.025
    return latency


def correlated_load(rng: np.random.Generator, n: int) -> Floats:
    """Load that wanders by about 4 %, with a memory of 200 requests."""
    from scipy.signal import lfilter

    load = lfilter([np.sqrt(1 - 0.995**2)], [1, -0.995], rng.normal(0, 0.04, n))
    return 0.008 * np.exp(load + rng.normal(0, 0.3, n))


def queue(rng: np.random.Generator, n: int) -> Floats:
    """A server at 60 % load: who comes while it is busy waits (Lindley's recursion)."""
    service, gaps = rng.gamma(4, 0.0015, n), rng.exponential(0.01, n)
    waited, latency = 0.0, np.empty(n)
    for i in range(n):
        latency[i] = waited + service[i]
        waited = max(latency[i] - gaps[i], 0.0)
    return latency


def log_logistic(rng: np.random.Generator, n: int) -> Floats:
    """A tail without variance."""
    odds = rng.random(n)
    return 0.005 * (odds / (1 - odds)) ** 0.25


def weibull_with_stalls(rng: np.random.Generator, n: int) -> Floats:
    return 0.003 + 0.006 * rng.weibull(1.4, n) + (rng.random(n) < 0.001) * rng.exponential(0.3, n)


def cache_hits(rng: np.random.Generator, n: int) -> Floats:
    """Four in five answers come from a cache."""
    miss = rng.random(n) < 0.2
    return np.where(miss, 0.02, 0.002) * np.exp(rng.normal(0, 0.25, n))


def moving_neighbours(rng: np.random.Generator, n: int) -> Floats:
    """Another program takes a tenth of the machine for half a second, now and then."""
    busy = np.zeros(n)
    for start in np.flatnonzero(rng.random(n) < 1 / 3000):
        busy[start : start + 500] = 1
    return 0.007 * (1 + 0.1 * busy) * np.exp(rng.normal(0, 0.3, n))


def inverse_gaussian(rng: np.random.Generator, n: int) -> Floats:
    return 0.001 + rng.wald(0.009, 0.08, n)


def triangle_with_outliers(rng: np.random.Generator, n: int) -> Floats:
    """Steady work, and one request in 200 that is retried up to ten times."""
    retries = np.where(rng.random(n) < 0.005, rng.integers(1, 11, n), 0)
    return rng.triangular(0.004, 0.005, 0.009, n) * (1 + retries)


def three_batches_in_turn(rng: np.random.Generator, n: int) -> Floats:
    """Batches of 1, 4 and 8, one after the other."""
    return np.tile([0.005, 0.009, 0.014], n // 3 + 1)[:n] * np.exp(rng.normal(0, 0.2, n))


def hyperexponential(rng: np.random.Generator, n: int) -> Floats:
    """Short requests and a tenth that take eight times as long, each exponential above a floor."""
    scale = np.where(rng.random(n) < 0.1, 0.016, 0.002)
    return 0.004 + scale * rng.exponential(1.0, n)


def clock_ticks(rng: np.random.Generator, n: int) -> Floats:
    """A scheduler that wakes every millisecond."""
    return np.ceil((0.006 * np.exp(rng.normal(0, 0.35, n))) * 1000) / 1000


def moving_average(rng: np.random.Generator, n: int) -> Floats:
    """Neighbours share half of what delays them, over ten requests."""
    noise = rng.normal(0, 1, n + 9)
    shared = np.convolve(noise, np.full(10, 10**-0.5), "valid")
    return 0.01 * np.exp(0.2 * shared + 0.2 * rng.normal(0, 1, n))


SETS: dict[str, dict[str, Noise]] = {
    "tuning": {
        "lognormal, spikes": lognormal_with_spikes,
        "the same, ±10 % swing": slow_swing,
        "gamma, Pareto tail": gamma_with_pareto,
        "Student's t of 3": student_log,
        "two shapes mixed": two_shapes,
        "bursts of pauses": bursts_of_pauses,
        "correlated load": correlated_load,
        "queue at 60 % load": queue,
        "log-logistic": log_logistic,
        "Weibull with stalls": weibull_with_stalls,
        "cache hits": cache_hits,
        "neighbours": moving_neighbours,
    },
    "judging": {
        "inverse Gaussian": inverse_gaussian,
        "retries": triangle_with_outliers,
        "three batches in turn": three_batches_in_turn,
        "hyperexponential": hyperexponential,
        "ticks of a scheduler": clock_ticks,
        "moving average": moving_average,
    },
}


def watches() -> dict[str, Callable[[], Watch]]:
    """Every detector of a stream of latencies, as it is used by default."""

    def alone(name: str, persistence: int = 1, **settings: object) -> Callable[[], Watch]:
        return lambda: Watch(
            "latency", [Guard(name, make_detector(name, **settings), Alarm(persistence=persistence))]
        )

    found = {
        "default set": lambda: Watch("latency", latency_guards()),
        "cusum": alone("cusum"),
        "cusum, blocks of 50": alone("cusum", block=50),
        "tail": alone("tail", persistence=2),
        "page-hinkley": alone("page-hinkley"),
        "robust-z of 25": alone("robust-z", persistence=2, block=25),
        "sigma of 25": alone("sigma", persistence=2, block=25),
        "ewma per request": alone("ewma"),
    }
    try:
        make_detector("adwin")
    except Exception as error:  # noqa: BLE001 - an extra
        print(f"adwin: left out: {error}")
    else:
        found["adwin"] = alone("adwin")
    return found


def alarms(watch: Watch, stream: Floats) -> Iterator[int]:
    """After which request each alarm began."""
    for start in range(0, len(stream), TICK):
        for noticed in watch.observe(start / RATE_PER_S, stream[start : start + TICK]):
            if noticed.change.firing:
                yield start + noticed.after


def false_alarms(make: Callable[[], Watch], noise: Noise, requests: int, runs: int, seed: int) -> float:
    """Per 100,000 stationary requests, warm-up included."""
    total = sum(
        sum(1 for _ in alarms(make(), noise(np.random.default_rng(seed + run), requests)))
        for run in range(runs)
    )
    return total * 100_000 / (requests * runs)


def delays(make: Callable[[], Watch], noise: Noise, step: float, runs: int, seed: int) -> list[int | None]:
    """Requests from a step to the alarm; null where there was none within 4,000."""
    found: list[int | None] = []
    for run in range(runs):
        stream = noise(np.random.default_rng(seed + run), WARM_UP + AFTER)
        stream[WARM_UP + run * 7 :] *= step
        # An alarm just before would be a false one, and is not counted as a discovery.
        found.append(
            next((at - WARM_UP - run * 7 for at in alarms(make(), stream) if at > WARM_UP + run * 7), None)
        )
    return found


def quantile(found: list[int | None], share: float) -> int | None:
    ranked = sorted(found, key=lambda delay: delay if delay is not None else 1 << 40)
    return ranked[min(int(share * len(ranked)), len(ranked) - 1)]


def judge(make: Callable[[], Watch], noise: Noise, requests: int, runs: int, seed: int) -> dict[str, object]:
    began = time.thread_time_ns()
    row: dict[str, object] = {"false_per_100k": false_alarms(make, noise, requests, runs, seed)}
    row["ns_per_request"] = (time.thread_time_ns() - began) / (requests * runs)
    for percent in (10, 20, 50):
        found = delays(make, noise, 1 + percent / 100, 2 * runs, seed + 10_000)
        row[f"delay_{percent}_p50"], row[f"delay_{percent}_p90"] = quantile(found, 0.5), quantile(found, 0.9)
        row[f"missed_{percent}"] = sum(one is None for one in found) / len(found)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--set", choices=SETS, default="judging")
    parser.add_argument("--only", default="", help="detectors whose name contains this")
    parser.add_argument("--noise", default="", help="noises whose name contains this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    if not options.json:
        print(
            f"{'noise':24}{'detector':22}{'false/100k':>11}{'+10 %':>12}{'+20 %':>12}{'+50 %':>12}{'ns':>7}"
        )
    for title, noise in SETS[options.set].items():
        if options.noise not in title:
            continue
        for name, make in watches().items():
            if options.only and options.only not in name:
                continue
            row = judge(make, noise, options.requests, options.runs, options.seed)
            rows.append({"noise": title, "detector": name, **row})
            cells = "".join(
                f"{row[f'delay_{p}_p50'] or '–'}/{row[f'delay_{p}_p90'] or '–'}".rjust(12)
                for p in (10, 20, 50)
            )
            if not options.json:
                print(
                    f"{title:24}{name:22}{row['false_per_100k']:11.2f}{cells}{row['ns_per_request']:7.0f}",
                    flush=True,
                )
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
