"""PYR303: more workers than are of use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

HEAD = """
import multiprocessing
import os
import torch.distributed as dist
from torch.utils.data import DataLoader

"""
RANKS = 'dist.init_process_group("nccl")\n'

FIRES = {
    "all": "loader = DataLoader(data, num_workers=os.cpu_count())  # <-\n",
    "all but one": "loader = DataLoader(data, num_workers=multiprocessing.cpu_count() - 1)  # <-\n",
    "through a name": """
workers = os.cpu_count() or 1
loader = DataLoader(data, num_workers=workers)  # <-
""",
}

SILENT = {
    "shared by the ranks": "loader = DataLoader(data, num_workers=os.cpu_count() // world_size)\n",
    "at most so many": "loader = DataLoader(data, num_workers=min(8, os.cpu_count()))\n",
    "a number": "loader = DataLoader(data, num_workers=16)\n",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_number(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR303", HEAD + RANKS + text) == marked(HEAD + RANKS + text)
    assert lines("PYR303", HEAD + text) == [], "one process may use all CPUs"


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR303", HEAD + RANKS + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR303")


def test_idle_workers_are_worth_knowing(
    loading: Callable[..., Any], advice: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    report = loading(verdict="healthy", data_share=0.01, advice=[advice("fewer-workers")])
    (finding,) = findings("PYR303", Case(target="a", loading=report))
    assert (finding.severity, finding.cost, finding.advice.gain) == ("info", None, None)


@pytest.mark.measuring
def test_workers_that_cost_more_than_they_bring_are_a_fault(
    observe: Callable[..., Case], findings: Callable[..., list[Finding]]
) -> None:
    import torch

    import pyrometer as pm

    def evidence(num_workers: int) -> Case:
        model = torch.nn.Linear(4, 1)
        data = torch.utils.data.TensorDataset(torch.randn(2000, 4), torch.randn(2000, 1))
        loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=num_workers)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        return observe(pm.Training(model, torch.nn.functional.mse_loss, optimizer, loader), "loading")

    with_worker, without = evidence(1), evidence(0)
    (finding,) = findings("PYR303", with_worker)
    assert finding.severity == "warning"
    assert finding.advice.rewrite == "num_workers=0"
    assert with_worker.loading is not None
    assert without.loading is not None
    assert without.loading.measured_step_s < with_worker.loading.measured_step_s
    assert findings("PYR303", without) == []
