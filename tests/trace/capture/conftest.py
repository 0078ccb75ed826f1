"""Small models, and one thread: nothing here measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
import torch
from torch import nn

from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import Trace
from pyrometer.workload.script.events import read_events
from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.startup._pyrometer_inside.log import EventLog
from pyrometer.workload.script.startup._pyrometer_inside.observer import Observer
from pyrometer.workload.script.startup._pyrometer_inside.torch_hooks import install
from pyrometer.workload.script.startup._pyrometer_inside.tracer import Tracer
from pyrometer.workload.training import Training


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


HEAD = """
import sys
import torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 6), nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    model(torch.randn(4, 6)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x))


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def training(net: nn.Module) -> Callable[..., Training]:
    def make(model: nn.Module = net, **options: object) -> Training:
        batches = [(torch.randn(4, 6), torch.randint(0, 3, (4,)))]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return Training(model, nn.CrossEntropyLoss(), optimizer, batches, **options)

    return make


@pytest.fixture
def count() -> Callable[..., int]:
    """How many events of a trace have a name."""

    def count(trace: Trace, name: str) -> int:
        return trace.events.filter(pl.col("name") == name).height

    return count


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """A script of these lines, below what most scripts begin with."""

    def write(text: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(HEAD + text)
        return str(path)

    return write


@dataclass(frozen=True)
class TracedHere:
    """What a tracer did in this process: the trace, if there is one, and its troubles."""

    trace: Trace | None
    troubles: list[str]
    num_steps: int | None


@pytest.fixture
def trace_here(tmp_path: Path) -> Callable[..., TracedHere]:
    """Run code as an observed script would, in this process: the same hooks without a second import of torch."""

    def run(code: str, *, steps: int = 5, skip: int = 3) -> TracedHere:
        log = EventLog(str(tmp_path / "events"))
        path = tmp_path / "here.json"
        request = {"path": str(path), "steps": steps, "skip": skip, "modules": True, "options": {}}
        observer = Observer(log, torch, follower=Tracer(torch, log, request))
        switch, missing = install(torch, observer)
        assert missing == []
        try:
            exec(compile(HEAD + code, "script.py", "exec"), {})
        finally:
            observer.resolve()
            switch(False)
        assert not torch.autograd.profiler._is_profiler_enabled
        events = read_events(tmp_path / "events")
        troubles = [kinds.TRACE_TROUBLES[i] for i in events.of(kinds.TRACE_TROUBLE).value]
        trace = read_trace(path) if path.exists() else None
        return TracedHere(trace, troubles, events.last_value(kinds.TRACE_END))

    return run
