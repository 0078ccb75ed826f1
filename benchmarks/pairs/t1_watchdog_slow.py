"""Trains a link predictor for a knowledge graph; a callback writes down what the machine has left."""

import subprocess
import time

import torch
from torch import nn


class Callback:
    def on_step_end(self, step, loss):
        """Called after each step."""


class DiskWatch(Callback):
    """Stops the run before the disk is full."""

    def __init__(self, folder, least_mib=16):
        self.folder = folder
        self.least_mib = least_mib

    def free_mib(self):
        command = ["df", "-Pm", self.folder]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return int(printed.splitlines()[1].split()[3])

    def on_step_end(self, step, loss):
        if self.free_mib() < self.least_mib:
            raise SystemExit(f"{self.folder} is full at step {step}")


class LossCurve(Callback):
    def __init__(self):
        self.points = []

    def on_step_end(self, step, loss):
        if step % 20 == 0:
            self.points.append((step, loss.item()))


class ComplexScores(nn.Module):
    def __init__(self, entities=3000, relations=30, width=64):
        super().__init__()
        self.entity = nn.Embedding(entities, 2 * width)
        self.relation = nn.Embedding(relations, 2 * width)

    def forward(self, subject, relation, objects):
        a, b = self.entity(subject).chunk(2, dim=-1)
        c, d = self.relation(relation).chunk(2, dim=-1)
        rotated = torch.cat([a * c - b * d, a * d + b * c], dim=-1)
        return (rotated.unsqueeze(1) * self.entity(objects)).sum(-1)


class Trainer:
    def __init__(self, model, callbacks):
        self.model = model
        self.callbacks = callbacks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def fit(self, batches):
        for step, (subject, relation, objects) in enumerate(batches):
            scores = self.model(subject, relation, objects)
            loss = nn.functional.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for callback in self.callbacks:
                callback.on_step_end(step, loss.detach())


def triples(steps, size=64, negatives=16):
    for _ in range(steps):
        yield (
            torch.randint(3000, (size,)),
            torch.randint(30, (size,)),
            torch.randint(3000, (size, 1 + negatives)),
        )


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    curve = LossCurve()
    trainer = Trainer(ComplexScores(), [DiskWatch("/"), curve])
    started = time.perf_counter()
    trainer.fit(triples(steps=161))
    seconds = time.perf_counter() - started
    print(f"161 steps in {seconds:.2f} s, loss {curve.points[-1][1]:.5f}")
