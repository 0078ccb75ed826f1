"""What watching a call costs, beside the usual wrapper, `prometheus_client` and no watching at all, in one run.

The usual wrapper is what guides show: a Prometheus counter and histogram, percentiles of a deque, a line of JSON for each call.
Costs are processor time per call: of the calling thread, and of the whole process, the monitor's thread with it.

    python benchmarks/monitor.py [--calls 1000000] [--many 10000000] [--flood SECONDS]

`--many 100000000` takes a minute or two, and `--flood 60` a minute: a hundred thousand calls a second from eight threads.
"""

from __future__ import annotations

import argparse
import collections
import io
import json
import logging
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np
import prometheus_client
import psutil
import torch

import pyrometer as pm

ROUNDS = 5
Function = Callable[[int], int]


def work(number: int) -> int:
    """What is watched: as good as nothing, so that what is added shows."""
    return number


def usual(function: Function) -> Function:
    """A wrapper as guides show it."""
    registry = prometheus_client.CollectorRegistry()
    calls = prometheus_client.Counter("calls", "calls", ["model", "status"], registry=registry)
    seconds = prometheus_client.Histogram("seconds", "seconds", ["model"], registry=registry)
    quantile = prometheus_client.Gauge("p99", "p99", ["model"], registry=registry)
    recent: collections.deque[float] = collections.deque(maxlen=1000)
    log = logging.getLogger("usual")
    log.propagate = False
    log.setLevel(logging.INFO)
    log.addHandler(logging.StreamHandler(io.StringIO()))

    def watched(number: int) -> int:
        start = time.perf_counter()
        answer = function(number)
        elapsed = time.perf_counter() - start
        recent.append(elapsed)
        calls.labels("model", "ok").inc()
        seconds.labels("model").observe(elapsed)
        quantile.labels("model").set(float(np.percentile(list(recent), 99)))
        log.info(json.dumps({"time": time.time(), "latency_s": elapsed, "status": "ok"}))
        return answer

    return watched


def counted(function: Function) -> Function:
    """`prometheus_client` alone, as cheap as it can be used: children that are looked up once."""
    registry = prometheus_client.CollectorRegistry()
    calls = prometheus_client.Counter("calls", "calls", ["model"], registry=registry).labels("model")
    seconds = prometheus_client.Histogram("seconds", "seconds", ["model"], registry=registry).labels("model")

    def watched(number: int) -> int:
        start = time.perf_counter()
        answer = function(number)
        seconds.observe(time.perf_counter() - start)
        calls.inc()
        return answer

    return watched


def per_call_s(function: Function, calls: int) -> tuple[float, float]:
    """Processor seconds per call: of this thread, of the process."""
    thread, process = time.thread_time(), time.process_time()
    for number in range(calls):
        function(number)
    return (time.thread_time() - thread) / calls, (time.process_time() - process) / calls


def cost_table(monitor: pm.Monitor, calls: int) -> None:
    """Each way in turn, several rounds, less the bare function's cost in the same round."""
    ways: dict[str, tuple[Function, int]] = {
        "pm.Monitor": (monitor.watch(work), calls),
        "prometheus_client": (counted(work), calls // 10),
        "usual wrapper": (usual(work), calls // 500),
    }
    added: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        bare, _ = per_call_s(work, calls)
        for name, (function, count) in ways.items():
            thread, process = per_call_s(function, count)
            added[name].append((thread - bare, process - bare))
    print("added per call          thread       (rounds)     process")
    ours = statistics.median(thread for thread, _ in added["pm.Monitor"])
    for name, rounds in added.items():
        threads = [thread * 1e6 for thread, _ in rounds]
        process = statistics.median(process for _, process in rounds) * 1e6
        middle = statistics.median(threads)
        spread = f"({min(threads):.2f}–{max(threads):.2f})"
        print(
            f"{name:20s} {middle:8.2f} µs {spread:>16s} {process:8.2f} µs   {middle / ours / 1e6:6.1f}× ours"
        )


def flat_memory(watched: Function, calls: int) -> None:
    """Resident memory at a tenth of the calls and at the end."""
    process, sizes = psutil.Process(), []
    for part in (calls // 10, calls - calls // 10):
        for number in range(part):
            watched(number)
        sizes.append(process.memory_info().rss / 2**20)
    print(f"memory after {calls // 10:,} calls {sizes[0]:.1f} MiB, after {calls:,} {sizes[1]:.1f} MiB")


def flood(monitor: pm.Monitor, seconds: float, num_threads: int = 8, per_second: int = 100_000) -> None:
    """So many calls a second from several threads: the slowest burst of a hundred calls, and whether each call is counted once."""
    watched = monitor.watch(work, name="flood")
    slowest = [0.0] * num_threads
    made = [0] * num_threads

    def call(place: int) -> None:
        began = time.perf_counter()
        due = int(per_second * seconds / num_threads)
        while made[place] < due:
            start = time.thread_time()
            for number in range(100):
                watched(number)
            slowest[place] = max(slowest[place], time.thread_time() - start)
            made[place] += 100
            ahead = made[place] / per_second * num_threads - (time.perf_counter() - began)
            if ahead > 0:
                time.sleep(ahead)

    threads = [threading.Thread(target=call, args=(place,)) for place in range(num_threads)]
    start, process = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - start
    spent = (time.process_time() - process) / took
    monitor.flush()
    seen = monitor.last(3600).calls["flood"]
    kept = seen.latency_s.count
    print(
        f"{sum(made):,} calls of {num_threads} threads in {took:.0f} s: {seen.num_ended:,} counted, {kept:,} latencies kept, "
        f"{seen.num_dropped:,} dropped, none lost: {seen.num_ended == sum(made) == kept + seen.num_dropped}; "
        f"{spent:.0%} of a core, slowest hundred calls {max(slowest) * 1e3:.1f} ms of processor time"
    )


def training_step(monitor: pm.Monitor, steps: int = 2000) -> None:
    """What watching adds to a step of a tiny net on the calling thread: loss each time, the norm in one step of ten."""
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    batch = torch.randn(16, 64)

    def per_step_s(training: Any) -> float:
        begun = time.thread_time()
        for x in [batch] * steps if training is None else training.batches([batch] * steps):
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if training is not None:
                training.step(loss)
        return (time.thread_time() - begun) / steps

    rounds = []
    for _ in range(ROUNDS):
        bare = per_step_s(None)
        with monitor.training(optimizer) as training:
            rounds.append((per_step_s(training) - bare, bare))
    added, bare = (statistics.median(column) * 1e6 for column in zip(*rounds, strict=True))
    print(f"training: {added:.1f} µs added to a step of {bare:.0f} µs")


def idle_share(seconds: float = 10.0) -> None:
    """Processor time of a process that waits, while the monitor ticks."""
    process = time.process_time()
    time.sleep(seconds)
    print(f"idle: {(time.process_time() - process) / seconds:.3%} of a core")


def output_check() -> None:
    """NaN, infinities and range of a million outputs."""
    outputs = torch.randn(1_000_000)

    def best_ms(check: Callable[[], Any]) -> float:
        times = []
        for _ in range(30):
            start = time.perf_counter()
            check()
            times.append(time.perf_counter() - start)
        return statistics.median(times) * 1e3

    print(
        f"1 M outputs: aminmax {best_ms(lambda: torch.aminmax(outputs)):.2f} ms, "
        f"isfinite().all() {best_ms(lambda: torch.isfinite(outputs).all()):.2f} ms"
    )


def scrape(monitor: pm.Monitor) -> None:
    """`/metrics` over HTTP with a thousand series more; what the whole process spends, the client's half with it."""
    gauge = monitor.gauge("benchmark_series", labels=["kind", "number"])
    for number in range(1000):
        gauge.set(number, number // 100, number % 100)
    monitor.flush()
    process = time.process_time()
    for _ in range(5):
        with urllib.request.urlopen(f"http://127.0.0.1:{monitor.port}/metrics") as answer:
            text = answer.read()
    spent_ms = (time.process_time() - process) / 5 * 1e3
    print(f"scrape: {text.count(bytes([10])):,} lines, {spent_ms:.1f} ms of processor time")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--many", type=int, default=10_000_000)
    parser.add_argument("--flood", type=float, default=5.0, metavar="SECONDS")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        monitor = pm.Monitor(model="benchmark", folder=folder, port=0, most_series=2000)
        try:
            cost_table(monitor, chosen.calls)
            output_check()
            idle_share()
            scrape(monitor)
            training_step(monitor)
            flood(monitor, chosen.flood)
            flat_memory(monitor.watch(work, name="many"), chosen.many)
            print(f"dropped samples {monitor.snapshot()['dropped_samples']}")
        finally:
            monitor.close()


if __name__ == "__main__":
    main()
