"""Trainings that are to be resumed bit for bit, and a process that has them killed at random moments.

python tests/support/training_program.py KIND FOLDER NUM_KILLS SEED
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

import pyrometer as pm

STEPS = 24
SAMPLES, BATCH, ACCUMULATE = 44, 4, 3  # 11 batches an epoch: each ends with two of three


class Noisy(Dataset):
    """Samples with augmentations from all three random generators."""

    def __init__(self):
        numbers = torch.Generator().manual_seed(3)
        self.x = torch.randn(SAMPLES, 6, generator=numbers)
        self.y = torch.randint(3, (SAMPLES,), generator=numbers)

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        noise = random.gauss(0, 0.1) + float(np.random.normal(0, 0.1)) + 0.1 * torch.randn(6)  # noqa: NPY002
        return self.x[index] + noise, self.y[index]


class Streamed(IterableDataset):
    """The same, without a length."""

    def __iter__(self):
        noisy = Noisy()
        return (noisy[index] for index in torch.randperm(SAMPLES).tolist())


class StatefulLoader:
    """A loader that says itself where it is, as torchdata's does."""

    def __init__(self):
        self.noisy = Noisy()
        self.order, self.at, self.loaded = None, 0, False

    def __iter__(self):
        if not self.loaded:
            self.order, self.at = torch.randperm(SAMPLES).tolist(), 0
        self.loaded = False
        while self.at < SAMPLES:
            samples = [self.noisy[index] for index in self.order[self.at : self.at + BATCH]]
            self.at += BATCH
            yield tuple(map(torch.stack, zip(*samples, strict=True)))

    def state_dict(self):
        return {"order": self.order, "at": self.at}

    def load_state_dict(self, state):
        self.order, self.at, self.loaded = state["order"], state["at"], True


class Average:
    """A moving average of the weights: what the user adds to the state."""

    def __init__(self, model):
        self.model = model
        self.mean = [parameter.detach().clone() for parameter in model.parameters()]

    def on_step(self, end):
        for mean, parameter in zip(self.mean, self.model.parameters(), strict=True):
            mean.lerp_(parameter.detach(), 0.1)

    def state_dict(self):
        return {"mean": self.mean}

    def load_state_dict(self, state):
        self.mean = state["mean"]


def loader_of(kind):
    if kind == "generator":
        return DataLoader(Noisy(), BATCH, shuffle=True, generator=torch.Generator().manual_seed(5))
    if kind == "workers":
        return DataLoader(Noisy(), BATCH, shuffle=True, num_workers=2)
    if kind == "stream":
        return DataLoader(Streamed(), BATCH)
    if kind == "stateful":
        return StatefulLoader()
    if kind == "list":
        return list(DataLoader(Noisy(), BATCH))
    return DataLoader(Noisy(), BATCH, shuffle=True)


def loop_of(kind, folder, **options):
    """A new training from its seed; whatever was drawn before does not matter."""
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.default_generator.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 3))
    model.register_buffer("unsaved", torch.zeros(()), persistent=False)
    model.register_forward_pre_hook(lambda own, _: own.unsaved.add_(1) and None)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=200)
    settings = {"amp": kind, "scaler": None} if kind in {"bfloat16", "float16"} else {}
    if kind == "float16":
        # A scale that overflows at first, and grows again and again.
        settings["scaler"] = torch.amp.GradScaler("cpu", init_scale=2.0**30, growth_interval=4)
    work = pm.Training(
        model,
        nn.CrossEntropyLoss(),
        optimizer,
        loader_of(kind),
        accumulate=ACCUMULATE,
        scheduler=scheduler,
        clip_norm=1.0,
        **settings,
    )
    average = Average(model)
    options["callbacks"] = [average, *options.get("callbacks", ())]
    return pm.TrainingLoop(work, checkpoints=folder, state={"average": average}, **options)


def digest(loop):
    """Everything that a step changes, as a hash."""
    from pyrometer.tuning.loop.random_state import random_state
    from pyrometer.tuning.loop.training_state import training_state

    average = loop._user_state["average"].state_dict()
    return hash_of([training_state(loop.parts), average, random_state()])


def hash_of(value):
    found = hashlib.sha256()

    def add(part):
        if isinstance(part, torch.Tensor):
            found.update(
                part.contiguous().view(torch.uint8).numpy().tobytes() if part.dim() else part.numpy()
            )
        elif isinstance(part, dict):
            add([*map(str, part), *part.values()])
        elif isinstance(part, (list, tuple)):
            for one in part:
                add(one)
        else:
            found.update(repr(part).encode())

    add(value)
    return found.hexdigest()


class Reporting:
    """Writes a line for every step, at once."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def on_log(self, point):
        os.write(self.descriptor, (json.dumps([point.step, *point.losses]) + "\n").encode())


def child(kind, folder, descriptor):
    """Train to the end, or until killed."""
    loop = loop_of(kind, folder, checkpoint_every=3, log_every=1, callbacks=[Reporting(descriptor)])
    loop.run(STEPS)
    os.write(descriptor, (json.dumps(["end", digest(loop)]) + "\n").encode())


def born(kind, folder):
    """A process that trains, and the pipe on which it reports."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, os.fdopen(reading)
    os.close(reading)
    try:
        child(kind, folder, writing)
    finally:
        sys.stdout.flush()
        os._exit(0)


def killed(kind, folder, chance):
    """Let a process train, kill it at a random moment of a random step; what it reported before."""
    pid, reports = born(kind, folder)
    lines = [reports.readline() for _ in range(chance.randrange(1, 8))]
    end_ns = time.perf_counter_ns() + chance.randrange(8_000_000)
    while time.perf_counter_ns() < end_ns:
        pass
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return [*lines, *reports]


def main(kind, folder, num_kills, seed):
    torch.set_num_threads(1)
    loop_of(kind, None)  # a first optimizer imports half of the compiler, which each fork would do anew
    chance = random.Random(seed)
    pid, reports = born(kind, None)
    lines = list(reports)
    os.waitpid(pid, 0)
    print(json.dumps({"reference": [json.loads(line) for line in lines]}))
    for _ in range(num_kills):
        told = [line for line in killed(kind, Path(folder, "killed"), chance) if line.endswith("\n")]
        print(json.dumps({"killed": [json.loads(line) for line in told]}))
    pid, reports = born(kind, Path(folder, "killed"))
    print(json.dumps({"last": [json.loads(line) for line in reports]}))
    os.waitpid(pid, 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
