"""PYR013: a schedule that nobody advances."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

HEAD = """
import torch
from torch.profiler import profile, schedule

plan = schedule(wait=1, warmup=1, active=2)
"""

FIRES = {
    "never": """
with profile(schedule=plan) as prof:  # <-
    for x in batches:
        model(x)
""",
    "without a name": """
with profile(schedule=plan, with_stack=True):  # <-
    for x in batches:
        model(x)
""",
    "only another's step": """
with profile(schedule=plan) as prof:  # <-
    for x in batches:
        model(x)
        optimizer.step()
print(prof.key_averages())
""",
}

SILENT = {
    "stepped": """
with profile(schedule=plan) as prof:
    for x in batches:
        model(x)
        prof.step()
""",
    "handed on": """
with profile(schedule=plan) as prof:
    train(model, profiler=prof)
""",
    "kept for others": """
with profile(schedule=plan) as prof:
    trainer.profiler = prof
    trainer.fit()
""",
    "no schedule": """
with profile() as prof:
    model(x)
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_profiler(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR013", HEAD + text) == marked(HEAD + text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR013", HEAD + text) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR013")


@pytest.mark.parametrize("stepped", [False, True])
def test_only_a_profiler_that_is_stepped_records(stepped: bool) -> None:
    ready = []
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with torch.profiler.profile(
        schedule=plan, on_trace_ready=lambda prof: ready.append(len(prof.events()))
    ) as prof:
        for _ in range(5):
            torch.nn.Linear(4, 4)(torch.randn(2, 4))
            if stepped:
                prof.step()
    assert bool(ready) is stepped
    assert all(ready)
