"""Sizes between 100 and 200, drawn at random: buckets against static and dynamic graphs.

    python benchmarks/shape_buckets.py [--calls 2000] [--graphs 8] [--backend inductor] [--budget 60] [--hidden 64] [--by-time]

First the counts: a plan is learned from one half of the traffic and meets the other. Graphs that Dynamo really compiled are
counted from its own log. Then the times: one pass of every way over the same sizes, in blocks of random mirrored order, with
99 % intervals over blocks. Compilation uses torch's caches as it finds them; give a new TORCHINDUCTOR_CACHE_DIR for cold ones.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable
from typing import Any

import psutil
import torch
from torch import nn

import pyrometer as pm
from pyrometer.compiler.collecting.collector import collect
from pyrometer.quantity import format_percent, format_ratio, format_seconds
from pyrometer.tuning.shapes.buckets import ShapeBuckets
from pyrometer.tuning.shapes.isolated import CompileSettings, IsolatedGraph
from pyrometer.tuning.shapes.planning import padding_share, size_counts
from pyrometer.tuning.shapes.record import AxisPlan, BucketPlan
from pyrometer.tuning.shapes.sampler import BucketBatchSampler

LOW, HIGH = 100, 200
ROWS = 4
PASS = 24


class Block(nn.Module):
    """A small transformer block without attention's mixing of positions: it bears padding."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.inner = nn.Linear(hidden, 4 * hidden)
        self.outer = nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One pass."""
        return x + self.outer(nn.functional.gelu(self.inner(self.norm(x))))


def best_fixed_width(sizes: list[int], num_graphs: int) -> list[int]:
    """Edges of one width up to the largest size, of the width that wastes least on these sizes."""
    tried = [
        [HIGH - width * k for k in reversed(range(num_graphs))] for width in range(1, HIGH // num_graphs)
    ]
    return min(tried, key=lambda edges: padding_share(size_counts(sizes), edges))


def counted(run: Callable[[], Any]) -> tuple[int, int, float]:
    """Graphs and recompilations that Dynamo logged meanwhile, and the time."""
    start = time.perf_counter()
    with collect() as collector:
        run()
    log = collector.log()
    elapsed_s = time.perf_counter() - start
    return (
        sum(1 for _ in log.of("dynamo_output_graph")),
        sum(1 for _ in log.of("recompile_reasons")),
        elapsed_s,
    )


def exercise(
    model: nn.Module, calls: int, graphs: int, backend: str, seed: int, *, by_time: bool
) -> ShapeBuckets:
    """Print the counts; returns the buckets, warm."""
    rng = random.Random(seed)
    learned, traffic = ([rng.randint(LOW, HIGH) for _ in range(calls)] for _ in range(2))
    hidden = model.norm.normalized_shape[0]
    sample = [{"x": (ROWS, size, hidden)} for size in learned]
    buckets = ShapeBuckets(
        model,
        {"x": {1: "length"}},
        sample=sample,
        max_graphs=graphs,
        backend=backend,
        compile_cost=None if by_time else 0.0,
        step_cost=None if by_time else float,
    )

    example = torch.randn(ROWS, HIGH, hidden)

    def serve() -> None:
        for size in traffic:
            x = torch.randn(ROWS, size, hidden)
            with torch.inference_mode():
                buckets(x)

    with torch.inference_mode():
        warm_graphs, _, warm_s = counted(lambda: buckets.precompile(example))
    traffic_graphs, recompiles, _ = counted(serve)
    statistics = buckets.statistics()
    naive = len(set(traffic))
    edges = buckets.plan.axes[0].edges if buckets.plan is not None else []
    fixed = best_fixed_width(learned, len(edges))
    ideal = padding_share(size_counts(learned), edges)
    print(
        f"| figure | buckets | compared with |\n|---|---|---|\n| edges | {edges} | best fixed width {fixed} |"
    )
    print(f"| hits after warm-up | {format_percent(statistics.hit_rate)} of {calls} calls | goal ≥ 95 % |")
    print(
        f"| graphs compiled | {warm_graphs} before traffic in {format_seconds(warm_s)}, {traffic_graphs} in traffic, "
        f"{recompiles} recompilations | {naive} by static graphs: {format_percent(1 - (warm_graphs + traffic_graphs) / naive)} fewer |"
    )
    own, other = (padding_share(size_counts(traffic), used) for used in (edges, fixed))
    print(
        f"| padding, sizes it was learned from | {format_percent(ideal)} | {format_percent(padding_share(size_counts(learned), fixed))} |"
    )
    print(
        f"| padding, new traffic | {format_percent(own)} (measured {format_percent(statistics.padding_share)}) | {format_percent(other)} |"
    )
    print(
        f"| checks against the model | {statistics.checks}, largest error {statistics.max_error:.1e} | legal 1e-4 |\n"
    )
    return buckets


def passes(model: nn.Module, buckets: ShapeBuckets, backend: str, seed: int) -> list[pm.Workload]:
    """One pass over the same sizes, each way; everything is compiled afterwards."""
    rng = random.Random(seed)
    hidden = model.norm.normalized_shape[0]
    inputs = [torch.randn(ROWS, rng.randint(LOW, HIGH), hidden) for _ in range(PASS)]
    settings = CompileSettings(backend)
    static = {x.shape[1]: IsolatedGraph(model, settings) for x in inputs}
    dynamic = IsolatedGraph(model, settings, dynamic=True)
    assert buckets.plan is not None
    edges = buckets.plan.axes[0].edges
    collate = BucketBatchSampler([HIGH], batch_size=1, edges=edges).collate
    batches = {x.shape[1]: collate(list(x)) for x in inputs}  # what a loader's workers would do
    switching = ShapeBuckets(
        model,
        {"x": {1: "length"}},
        plan=buckets.plan,
        backend=backend,
        max_graphs=max(len(edges), 8),
        when_slower="switch",
    )
    with torch.inference_mode():
        switching.precompile(inputs[0])
    ways: dict[str, Callable[[torch.Tensor], Any]] = {
        "dynamic": dynamic.call,
        "buckets": buckets,
        "buckets, padded by the loader": lambda x: buckets(batches[x.shape[1]]),
        'buckets, when_slower="switch"': switching,
        "one size": ShapeBuckets(
            model,
            {"x": {1: "length"}},
            plan=BucketPlan(axes=[AxisPlan(name="length", edges=[HIGH])]),
            backend=backend,
        ),
        "static": lambda x: static[x.shape[1]].call(x),
        "eager": model,
    }

    def one_pass(run: Callable[[torch.Tensor], Any]) -> Callable[[], None]:
        def go() -> None:
            with torch.inference_mode():
                for x in inputs:
                    run(x)

        return go

    works = []
    for name, run in ways.items():
        go = one_pass(run)
        graphs, _, first_s = counted(go)
        print(f"{name}: {graphs} graphs in the first pass of {PASS} sizes, {format_seconds(first_s)}")
        works.append(pm.Call(go, name=name))
    return works


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--graphs", type=int, default=8)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--by-time", action="store_true", help="as many buckets as measured steps ask for")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    model = Block(arguments.hidden).eval()
    load = psutil.getloadavg()[0]
    print(
        f"torch {torch.__version__}, {os.cpu_count()} CPUs with load {load:.1f}, 1 thread, {arguments.backend}\n"
    )
    buckets = exercise(
        model,
        arguments.calls,
        arguments.graphs,
        arguments.backend,
        arguments.seed,
        by_time=arguments.by_time,
    )
    works = passes(model, buckets, arguments.backend, arguments.seed)
    verdicts = pm.compare_many(works[0], works[1:], budget_s=arguments.budget)
    base_s = verdicts[0].baseline_s or 0.0
    print("\n| way | time per call | against dynamic (99 % interval) |\n|---|---|---|")
    print(f"| dynamic | {format_seconds(base_s / PASS)} | |")
    for verdict in verdicts:
        low, high = verdict.ci_low or 0.0, verdict.ci_high or float("inf")
        ratio = format_ratio(verdict.ratio, low, high)
        print(f"| {verdict.candidate} | {format_seconds(base_s * verdict.ratio / PASS)} | {ratio} |")
    statistics = buckets.statistics()
    print(
        f"\nBuckets so far: lost to padding {format_seconds(statistics.lost_s)}, copying {format_seconds(statistics.copying_s)}, "
        f"{statistics.calls} calls."
    )
    told = {way.name: format_seconds(way.step_s) for way in statistics.ways}
    print(
        f"Before traffic they were compared with other ways: {told}; recommended: {statistics.recommended}."
    )
    print("\n".join(statistics.notes))


if __name__ == "__main__":
    main()
