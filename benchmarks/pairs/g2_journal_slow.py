"""Fine-tunes the head of an audio tagger and keeps a journal of every sample's loss."""

import json
import os
import tempfile
import time
from pathlib import Path

import torch
from torch import nn


class Journal:
    """Lines of JSON, one for each sample that was seen."""

    def __init__(self, path):
        self.file = path.open("w")

    def write(self, **fields):
        self.file.write(json.dumps(fields) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def close(self):
        self.file.close()


class Tagger(nn.Module):
    def __init__(self, bands=64, tags=20):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(bands, 128, 3), nn.ReLU(), nn.Conv1d(128, 128, 3), nn.ReLU())
        self.head = nn.Linear(128, tags)

    def forward(self, clip):
        return self.head(self.body(clip).amax(-1))


class Trainer:
    def __init__(self, model, journal):
        self.model = model
        self.journal = journal
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        self.criterion = nn.BCEWithLogitsLoss(reduction="none")

    def training_step(self, number, clips, tags):
        losses = self.criterion(self.model(clips), tags).mean(1)
        self.optimizer.zero_grad()
        losses.mean().backward()
        self.optimizer.step()
        for sample, loss in enumerate(losses.tolist()):
            self.journal.write(step=number, sample=sample, loss=round(loss, 5))
        return losses.detach().mean()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    clips = torch.randn(512, 64, 40)
    tags = (torch.rand(512, 20) < 0.1).float()
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal.jsonl")
        trainer = Trainer(Tagger(), journal)
        started = time.perf_counter()
        for number in range(100):
            rows = slice(number * 16 % 512, number * 16 % 512 + 16)
            loss = trainer.training_step(number, clips[rows], tags[rows])
        journal.close()
        print(f"100 steps in {time.perf_counter() - started:.2f} s, loss {loss:.5f}")


if __name__ == "__main__":
    main()
