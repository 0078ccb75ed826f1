"""What recording the compiler costs: cold and warm compilation in fresh processes, steady steps in pairs.

    python benchmarks/compile_overhead.py [--rounds 9] [--pairs 2000] [--cold-rounds 5]

Each round starts two fresh processes, one with the collector attached, in an order that a coin decides; each compiles the same
model with Inductor. Cold processes get an empty cache each, warm ones share a filled one. Counted is the CPU time of the
process and of the compilers that it started, which other programs disturb least, from the first call until its end; the
imports lie before. Steady steps run in one process, in pairs with the collector attached and not, in an order drawn anew.
Reported are medians of the paired ratios with a 95 % interval from the order statistics; and torch's own count of what
rendering its entries took.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from scipy.stats import binom

CONFIDENCE = 0.95


def model_and_input() -> tuple:
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.norm, self.up, self.down = (
                nn.LayerNorm(width),
                nn.Linear(width, 2 * width),
                nn.Linear(2 * width, width),
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

    torch.manual_seed(0)
    return nn.Sequential(*[Block(64) for _ in range(4)]), torch.randn(32, 64)


def cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(rusage.ru_utime + rusage.ru_stime for rusage in used)


def child(observed: bool) -> None:
    """Compile once, forward and backward, and print what it cost."""
    import torch
    import torch._inductor.compile_fx

    from pyrometer.compiler.build import build_report
    from pyrometer.compiler.collecting.collector import collect

    torch.set_num_threads(1)
    model, x = model_and_input()
    compiled = torch.compile(model)
    with collect() if observed else contextlib.nullcontext() as collector:
        before_s, wall_s = cpu_s(), time.perf_counter()
        compiled(x).sum().backward()
        spent = {"cpu_s": cpu_s() - before_s, "wall_s": time.perf_counter() - wall_s}
    if collector is not None:
        log = collector.log()
        report = build_report(log)
        spent |= {"entries": len(log.entries), "observing_s": report.cost.observing_s or 0.0}
    print(json.dumps(spent))


def run_child(observed: bool, cache: str) -> dict[str, float]:
    # One process compiles its kernels one after the other: what is counted does not depend on the other cores.
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    command = [sys.executable, __file__, "--child", "observed" if observed else "plain"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Median and its distribution-free interval."""
    ordered = np.sort(values)
    low = int(binom.ppf((1 - CONFIDENCE) / 2, len(ordered), 0.5))
    return float(np.median(ordered)), float(ordered[low]), float(ordered[len(ordered) - 1 - low])


def compiling(name: str, rounds: int, coin: random.Random, cache_of: Callable[[], str]) -> None:
    pairs = []
    for _ in range(rounds):
        cost = {observed: run_child(observed, cache_of()) for observed in coin.sample([False, True], 2)}
        pairs.append((cost[False], cost[True]))
    for what in ("cpu_s", "wall_s"):
        ratios = np.array([observed[what] / plain[what] for plain, observed in pairs])
        middle, low, high = interval(ratios - 1)
        plain_s = float(np.median([plain[what] for plain, _ in pairs]))
        print(
            f"{name}, {what[:-2]} time: {plain_s:.2f} s, recorded {middle:+.1%} ({low:+.1%} to {high:+.1%})"
        )
    share = [observed["observing_s"] / observed["wall_s"] for _, observed in pairs]
    print(f"  {pairs[0][1]['entries']} entries; by torch's own count {np.median(share):.2%} of the wall time")


def steady(num_pairs: int, coin: random.Random) -> None:
    import torch

    from pyrometer.compiler.collecting.collector import collect

    torch.set_num_threads(1)
    model, x = model_and_input()
    compiled = torch.compile(model, backend="aot_eager")
    compiled(x)
    times, entries = np.empty((num_pairs, 2)), 0
    for pair in times:
        for observed in coin.sample([0, 1], 2):
            with collect() if observed else contextlib.nullcontext() as collector:
                start_s = time.process_time()
                for _ in range(5):
                    compiled(x)
                pair[observed] = (time.process_time() - start_s) / 5
            entries += len(collector.log().entries) if collector is not None else 0
    middle, low, high = interval(times[:, 1] / times[:, 0] - 1)
    print(
        f"steady: {np.median(times[:, 0]) * 1e6:.0f} µs per step, recorded {middle:+.2%} ({low:+.2%} to {high:+.2%}); "
        f"{entries} entries in {num_pairs * 5} steps"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cold-rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", choices=("plain", "observed"))
    args = parser.parse_args()
    if args.child:
        child(args.child == "observed")
        return
    coin = random.Random(args.seed)
    steady(args.pairs, coin)
    with tempfile.TemporaryDirectory() as warm:
        run_child(False, warm)
        compiling("warm compile", args.rounds, coin, lambda: warm)
    with tempfile.TemporaryDirectory() as folder:
        compiling("cold compile", args.cold_rounds, coin, lambda: tempfile.mkdtemp(dir=folder))


if __name__ == "__main__":
    main()
