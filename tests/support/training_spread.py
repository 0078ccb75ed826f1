"""One process of a training whose global batch is eight samples, however many processes share it.

python tests/support/training_spread.py RANK NUM_RANKS MEETING KIND FOLDER STEPS, with KIND ddp or fsdp2; one rank trains the plain model.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import pyrometer as pm

GLOBAL_BATCH, NUM_BATCHES, ACCUMULATE = 8, 5, 2


def spread(model, kind, sent):
    """Over all ranks; what sends gradients notes it."""
    if kind == "ddp":
        wrapped = DistributedDataParallel(model)

        def hook(state, bucket):
            sent.append(bucket.index())
            return allreduce_hook(state, bucket)

        wrapped.register_comm_hook(None, hook)
        return wrapped
    fully_shard(model)
    return model


def main(rank, num_ranks, meeting, kind, folder):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    batches = [
        (torch.randn(GLOBAL_BATCH, 6), torch.randint(0, 3, (GLOBAL_BATCH,))) for _ in range(NUM_BATCHES)
    ]
    sent: list[int] = []
    if num_ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=num_ranks)
        model = spread(model, kind, sent)
    own = [(x[rank::num_ranks], y[rank::num_ranks]) for x, y in batches]
    optimizer = torch.optim.AdamW(model.parameters(), 0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    work = pm.Training(
        model,
        nn.CrossEntropyLoss(),
        optimizer,
        own,
        accumulate=ACCUMULATE,
        scheduler=scheduler,
        clip_norm=1.0,
    )
    loop = pm.TrainingLoop(work, checkpoints=None if folder == "none" else Path(folder), checkpoint_every=2)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        run = loop.run(int(sys.argv[6]))
    scattered = sum("c10d::" in event.name and "reduce_scatter" in event.name for event in profiler.events())
    weights = [
        getattr(parameter, "full_tensor", lambda parameter=parameter: parameter)().flatten().tolist()
        for parameter in model.parameters()
    ]
    told = {
        "first": run.first_step,
        "losses": run.losses,
        "weights": [number for own in weights for number in own],
        "sent": len(sent) + scattered,
    }
    print(json.dumps(told | {"scheduler": scheduler.last_epoch}))
    if num_ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:6])
