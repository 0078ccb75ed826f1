"""One rank of a training by DistributedDataParallel.

python tests/support/training_ranks.py RANK NUM_RANKS MEETING FOLDER STEPS
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from training_program import Noisy, hash_of

import pyrometer as pm


class Stopping:
    """The last rank alone gets a signal."""

    def on_step(self, end):
        if dist.get_rank() == dist.get_world_size() - 1 and end.step == 4:
            os.kill(os.getpid(), signal.SIGTERM)


def main(rank, num_ranks, meeting, folder, steps):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=num_ranks)
    random.seed(rank)
    np.random.seed(rank)  # noqa: NPY002
    torch.default_generator.manual_seed(rank)
    model = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 3))
    model = DistributedDataParallel(model)
    data = Noisy()
    loader = DataLoader(data, 4, sampler=DistributedSampler(data))
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    work = pm.Training(model, nn.CrossEntropyLoss(), optimizer, loader, accumulate=2)
    callbacks = [Stopping()] if steps == 100 else []
    loop = pm.TrainingLoop(
        work,
        checkpoints=None if folder == "none" else Path(folder),
        checkpoint_every=2,
        log_every=3,
        callbacks=callbacks,
    )
    run = loop.run(steps)
    weights = hash_of(list(model.module.parameters()))
    print(json.dumps({"first": run.first_step, "step": run.step, "losses": run.losses, "weights": weights}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]))
