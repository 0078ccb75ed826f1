from __future__ import annotations

import pytest
import torch

FIRES = {
    "beside the backward pass": """
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) / accumulate
            loss.backward()
            if (i + 1) % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
            scheduler.step()  # <-
    """,
    "an attribute": """
        class Trainer:
            def train(self):
                for i, batch in enumerate(self.loader):
                    self.loss(batch).backward()
                    self.lr_scheduler.step()  # <-
                    if i % self.accumulate == 0:
                        self.optimizer.step()
    """,
    "a loop within": """
        for step in range(steps):
            for micro in range(accumulate):
                model(next(batches)).backward()
                scheduler.step()  # <-
            optimizer.step()
    """,
}

SILENT = {
    "beside the optimizer": """
        for i, (x, y) in enumerate(loader):
            criterion(model(x), y).backward()
            if (i + 1) % accumulate == 0:
                optimizer.step()
                scheduler.step()
    """,
    "no accumulation": """
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
            scheduler.step()
    """,
    "per epoch": """
        for epoch in range(epochs):
            for i, (x, y) in enumerate(loader):
                criterion(model(x), y).backward()
                if i % 4 == 0:
                    optimizer.step()
            scheduler.step()
    """,
    "under its own condition": """
        for i, (x, y) in enumerate(loader):
            criterion(model(x), y).backward()
            if i % 4 == 0:
                optimizer.step()
            if i % 4 == 0:
                scheduler.step()
    """,
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_it_fires(lines, marked, text):
    assert lines("PYR611", text) == marked(text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_it_is_silent(lines, text):
    assert lines("PYR611", text) == []


@pytest.mark.parametrize(("beside_optimizer", "times"), [(True, 2), (False, 8)])
def test_the_advice_steps_it_as_often_as_the_optimizer(beside_optimizer, times):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    for number in range(8):
        model(torch.ones(1, 2)).backward()
        is_last = (number + 1) % 4 == 0
        if is_last:
            optimizer.step()
        if is_last or not beside_optimizer:
            scheduler.step()
    assert scheduler.get_last_lr()[0] == pytest.approx(0.1 * 0.5**times)
