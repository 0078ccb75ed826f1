"""What does a check cost beside measuring? CPU seconds of `pyrometer check` of a tiny workload, less those of its measured steps.

    python benchmarks/fixed_cost.py [--runs 7] [--budget 1s]

Interpreter, imports of torch and of our own, the first start of the profiler, memory, numerics, rules and the page: all of the process,
its children included, but the time that the measurement itself reports. Beside it stands what the program takes without a check: the
interpreter, torch, and what building the workload imports, such as Dynamo, which every optimizer of torch does. The first run
warms the disk's cache and writes bytecode, as installing does, and does not count.
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


CHECK = ["-m", "pyrometer", "check", "tiny.py:workload", "--json", "--no-store", "--budget"]


def fixed_s(folder: Path, budget: str) -> float:
    """CPU seconds of one check, less those of its measurement."""
    spent, printed = cpu_s(folder, *CHECK, budget)
    measured = json.loads(printed)["evidence"]["measurement"]
    share = min(1.0, measured["cpu_s"] / measured["mean_s"])  # less than one where others had the processor
    return spent - float(measured["elapsed_s"]) * share


def alone_s(folder: Path) -> float:
    """CPU seconds of the program without a check."""
    return cpu_s(folder, "-c", "import tiny; tiny.workload()")[0]


def cpu_s(folder: Path, *arguments: str) -> tuple[float, bytes]:
    """CPU seconds of the interpreter with these arguments, and what it printed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ran.stdout


def main() -> None:
    """Print the median and the range of each program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--budget", default="1s")
    options = parser.parse_args()
    for name, text in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tiny.py").write_text(text, encoding="utf-8")
            fixed_s(Path(folder), options.budget)
            times = sorted(fixed_s(Path(folder), options.budget) for _ in range(options.runs))
            alone = statistics.median(alone_s(Path(folder)) for _ in range(options.runs))
        print(
            f"{name}: {statistics.median(times):.2f} s of CPU ({times[0]:.2f}–{times[-1]:.2f}, {len(times)} runs), "
            f"of which the program alone takes {alone:.2f} s"
        )


if __name__ == "__main__":
    main()
