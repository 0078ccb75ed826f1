"""What does a check cost beside measuring? CPU seconds of `pyrometer check` of a tiny workload, less those of its measured steps.

    python benchmarks/fixed_cost.py [--runs 7] [--budget 1s]

Interpreter, imports of torch and of our own, the first start of the profiler, memory, numerics, rules and the page: all of the process,
its children included, but the time that the measurement itself reports. The first run warms the disk's cache and does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = {
    "inference": """
import torch
import pyrometer as pm

def workload():
    return pm.Inference(torch.nn.Linear(32, 32), (torch.randn(8, 32),))
""",
    "training": """
import torch
import pyrometer as pm

def workload():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = (torch.randn(8, 32), torch.randn(8, 32))
    return pm.Training(model, torch.nn.functional.mse_loss, optimizer, [batch])
""",
}


def fixed_s(folder: Path, budget: str) -> float:
    """CPU seconds of one check, less the elapsed time of its measurement, in which it computes throughout."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        sys.executable,
        "-m",
        "pyrometer",
        "check",
        "tiny.py:workload",
        "--budget",
        budget,
        "--json",
        "--no-store",
    ]
    ran = subprocess.run(
        command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent - float(json.loads(ran.stdout)["evidence"]["measurement"]["elapsed_s"])


def main() -> None:
    """Print the median and the range of each program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--budget", default="1s")
    options = parser.parse_args()
    for name, text in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tiny.py").write_text(text, encoding="utf-8")
            times = sorted(fixed_s(Path(folder), options.budget) for _ in range(options.runs + 1))[:-1]
        print(
            f"{name}: {statistics.median(times):.2f} s of CPU ({times[0]:.2f}–{times[-1]:.2f}, {len(times)} runs)"
        )


if __name__ == "__main__":
    main()
