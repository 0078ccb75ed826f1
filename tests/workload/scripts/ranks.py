"""A data-parallel training of two ranks; what goes wrong on rank 1 is the first argument."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

mode = sys.argv[1]


class Samples(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        if mode == "slow" and dist.get_rank() == 1:
            time.sleep(0.01)
        return torch.ones(16) * index


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.05)


dist.init_process_group("gloo")
print("rank", dist.get_rank(), "has begun")
model = nn.parallel.DistributedDataParallel(nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for step, batch in enumerate(DataLoader(Samples(), batch_size=4)):
    if dist.get_rank() == 1 and step == 20:
        if mode == "raises":
            raise ValueError("planted")
        if mode == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if mode == "hangs":
            wait_for(sys.argv[2])
    model(batch).sum().backward()
    if step % 2:
        optimizer.step()
        optimizer.zero_grad()
dist.destroy_process_group()
