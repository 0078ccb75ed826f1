"""PYR006: logging for every step or request."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

HEAD = """
import json
import logging
import torch
import wandb
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter

logger = logging.getLogger(__name__)
writer = SummaryWriter()

def train(model: nn.Module, loader: DataLoader, optimizer):
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""

FIRES = {
    "wandb": '        wandb.log({"loss": loss.detach()})  # <-\n',
    "tensorboard": '        writer.add_scalar("loss", loss.detach(), step)  # <-\n',
    "a logger": '        logger.info("step %d", step)  # <-\n',
    "a file of one name": """
        with open("metrics.jsonl", "a") as file:  # <-
            file.write(json.dumps({"step": step}))
""",
}

SILENT = {
    "every fiftieth": """
        if step % 50 == 0:
            wandb.log({"loss": loss.detach()})
""",
    "on a condition": """
        if verbose:
            logger.info("step %d", step)
""",
    "at debug level": '        logger.debug("step %d", step)\n',
    "a file for each": """
        with open(f"out/{step}.txt", "w") as file:
            file.write("done")
""",
    "a file that is open": "        file.write('done')\n",
    "after the loop": "    wandb.log({'done': 1})\n",
    "when it fails": """
        try:
            check(x)
        except ValueError:
            logger.info("bad batch %d", step)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_call(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR006", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR006", HEAD + text) == []


def test_records_of_a_request_handler_are_told(
    lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    text = """
import logging
import torch
from torch import nn
from fastapi import FastAPI

app = FastAPI()
logger = logging.getLogger(__name__)
model = nn.Linear(8, 8)

@app.post("/predict")
def predict(values: list[float]):
    answer = model(torch.tensor(values))
    logger.info("answered %s", answer)  # <-
    return answer.tolist()
"""
    assert lines("PYR006", text) == marked(text)


def test_records_of_other_loops_are_left_alone(lines: Callable[..., list[int]]) -> None:
    text = """
import logging
import torch
from torch import nn

logger = logging.getLogger(__name__)

def compare(one: nn.Module, other: nn.Module, x: torch.Tensor, num_iterations):
    for i in range(num_iterations):
        logger.info("round %d: %s", i, torch.equal(one(x), other(x)))
"""
    assert lines("PYR006", text) == []


def test_once_per_epoch_is_no_matter(lines: Callable[..., list[int]]) -> None:
    text = """
import wandb, torch

for epoch in range(10):
    train_one_epoch()
    wandb.log({"epoch": epoch})
"""
    assert lines("PYR006", text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR006")


def test_the_replacement_logs_a_part(
    run: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[Any] = []
    monkeypatch.setitem(__import__("sys").modules, "wandb", types.SimpleNamespace(log=logged.append))
    counts = []
    for heading in ("Example", "Use instead"):
        logged.clear()
        model = torch.nn.Linear(4, 1)
        batches = [(torch.randn(2, 4), torch.randn(2, 1))] * 100
        run("PYR006", heading)["train"](model, batches, torch.optim.SGD(model.parameters(), lr=0.1))
        counts.append(len(logged))
    assert counts == [100, 2]
