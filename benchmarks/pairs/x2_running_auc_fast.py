"""Trains a fraud detector and shows the area under the curve of all transactions seen so far."""

import time

import torch
from torch import nn


class FraudNet(nn.Module):
    def __init__(self, features=30):
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm1d(features),
            nn.Linear(features, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Linear(64, 1),
        )

    def forward(self, transactions):
        return self.layers(transactions).squeeze(1)


class AreaUnderCurve:
    """Rank statistic over the whole history."""

    def __init__(self):
        self.scores = torch.empty(0)
        self.labels = torch.empty(0)

    def update(self, scores, labels):
        self.scores = torch.cat([self.scores, scores])
        self.labels = torch.cat([self.labels, labels])

    def compute(self):
        ranks = self.scores.double().argsort().argsort().double() + 1
        positive = self.labels.double()
        count = positive.sum()
        area = (ranks * positive).sum() - count * (count + 1) / 2
        return (area / (count * (len(positive) - count))).item()


class Progress:
    def __init__(self, every):
        self.every = every
        self.metric = AreaUnderCurve()
        self.latest = 0.5

    def after_batch(self, step, scores, labels):
        self.metric.update(scores, labels)
        if (step + 1) % self.every == 0:
            self.latest = self.metric.compute()


def main(steps=150, batch=512):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    transactions = torch.randn(8192, 30)
    fraud = (torch.rand(8192) < torch.sigmoid(transactions[:, 0] * 2 - 3)).float()
    model, progress = FraudNet(), Progress(every=50)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    started = time.perf_counter()
    for step in range(steps):
        rows = slice(step * batch % 8192, step * batch % 8192 + batch)
        logits = model(transactions[rows])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, fraud[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.after_batch(step, logits.detach(), fraud[rows])
    print(
        f"{steps} steps in {time.perf_counter() - started:.2f} s: loss {loss:.5f}, AUC {progress.latest:.5f}"
    )


if __name__ == "__main__":
    main()
