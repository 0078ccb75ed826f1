"""Does `scale` hold? Predicted and measured steps of DDP and FSDP2 on 2 and 4 real processes of this machine.

    python benchmarks/scale_prediction.py [TARGET] [--processes 2,4] [--repeats 5] [--budget 20]

Each repeat starts the processes anew: links, and steps with and without communication in turns; the prediction is made from those
without, as `scale --check` does. Printed are both, and the median error of all repeats with its range. Where there are more processes than
cores, steps with and without communication share them alike.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import get_args

from pyrometer.scaling.record import Parallel
from pyrometer.scaling.running import run_of, schedules_of
from pyrometer.scaling.scale import check

PROGRAM = """
import torch
from torch import nn

import pyrometer as pm


def work():
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(6)])
    batches = [(torch.randn(256, 512), torch.randn(256, 512)) for _ in range(4)]
    return pm.Training(model, nn.functional.mse_loss, torch.optim.AdamW(model.parameters()), batches)
"""


def main() -> None:
    """Print a line per repeat, and one per kind and number of processes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("target", nargs="?", help="another training than six layers of 512")
    parser.add_argument("--processes", default="2,4")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of each run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "training.py"
        program.write_text(PROGRAM)
        target = options.target or f"{program}:work"
        for parallel in get_args(Parallel):
            for processes in map(int, options.processes.split(",")):
                (schedule,) = schedules_of(target, [processes], parallel, options.budget / 2)
                errors = []
                for _ in range(options.repeats):
                    told = check(run_of(processes, options.budget, target, parallel), schedule)
                    errors.append(told.predicted_s / told.measured_s - 1)
                    print(
                        f"  {parallel}, {processes} processes: measured {told.measured_s * 1e3:.1f} ms, predicted {told.predicted_s * 1e3:.1f} ms "
                        f"({told.low_s * 1e3:.1f} to {told.high_s * 1e3:.1f}), alone {told.alone_s * 1e3:.1f} ms: {errors[-1]:+.1%}",
                        flush=True,
                    )
                print(
                    f"{parallel}, {processes} processes: median error {statistics.median(errors):+.1%} "
                    f"({min(errors):+.1%} to {max(errors):+.1%} in {len(errors)} runs), wrapping {schedule.wrapping_ratio:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
