"""One rank of a small job on the CPU that accumulates gradients, traced; with `no_sync` or without, one rank late or none."""

from __future__ import annotations

import contextlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule

WIDTH, STEPS, ACCUMULATE = 64, 3, 4


def main(rank: int, store: str, output: str, variant: str) -> None:
    """Train for three recorded steps and write the trace."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, 8))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = schedule(wait=0, warmup=2, active=STEPS, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=plan) as recorded:
        for _ in range(2 + STEPS):
            dist.barrier()
            if variant == "late" and rank == 1:
                time.sleep(0.15)
            for micro in range(ACCUMULATE):
                skip = variant != "every" and micro < ACCUMULATE - 1
                with model.no_sync() if skip else contextlib.nullcontext():
                    (model(torch.randn(8, WIDTH)).sum() / ACCUMULATE).backward()
            optimizer.step()
            optimizer.zero_grad()
            recorded.step()
    recorded.export_chrome_trace(output)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:5])
