"""Steps as flow graphs, in which every operator takes one second."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.dataflow.graph import FlowGraph
from pyrometer.dataflow.record import record_dataflow
from pyrometer.workload.call import Call
from pyrometer.workload.workload import Workload


@pytest.fixture
def flow() -> Callable[..., FlowGraph]:
    """`flow(function_or_workload, steps=3)`: the graph of some steps."""

    def record(step: Any, steps: int = 3) -> FlowGraph:
        work = step if isinstance(step, Workload) else Call(step)
        seconds = itertools.count()
        return record_dataflow(work, steps=steps, budget_s=1e9, clock=lambda: float(next(seconds)))

    return record
