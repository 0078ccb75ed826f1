"""One rank of a small data-parallel job on the CPU, traced; rank 1 sleeps in every step."""

from __future__ import annotations

import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule


def main(rank: int, world_size: int, store: str, output: str, sleep_s: float) -> None:
    """Train for three recorded steps and write the trace."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world_size)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    # One step of a cycle beyond the last recorded one would begin a new recording and lose this one.
    plan = schedule(wait=0, warmup=2, active=3, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=plan) as recorded:
        for _ in range(5):
            dist.barrier()
            if rank == 1:
                time.sleep(sleep_s)
            model(torch.randn(8, 64)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            recorded.step()
    recorded.export_chrome_trace(output)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5]))
