"""What tests of rules about the host share: a training loop to put lines into, golden device traces, counted operators."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from pyrometer.host.profile import HostLeaf, HostLine, HostLoop, HostProfile
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.rules.joining import function_at
from pyrometer.source.module import Module
from pyrometer.trace.capture.record import Capture, CaptureOptions
from pyrometer.trace.reporting.rank_report import report_rank
from recorded import case_of_program

LOOP = """\
import logging
import math
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

logger = logging.getLogger(__name__)
device = torch.device("cuda")
model = nn.Linear(8, 8).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader: DataLoader, epochs: int) -> None:
    total = 0.0
    history = []
    for step, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device), targets.to(device)
        scores = model(inputs)
        loss = nn.functional.cross_entropy(scores, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""
"""A training loop; what a test adds stands at its end."""

STEP_US = 1000.0


@pytest.fixture
def in_loop() -> Callable[[str], str]:
    """A training loop with these lines at the end of its body."""
    return lambda body: LOOP + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"


@pytest.fixture
def in_program(in_loop: Callable[[str], str]) -> Callable[[str], str]:
    """A training loop with these lines at the end of its body; a whole file as it is."""
    return lambda body: textwrap.dedent(body) if body.lstrip().startswith("import") else in_loop(body)


class CountedOps(TorchDispatchMode):
    """Counts the operators that reach the backend, by name without overload."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func._schema.name.removeprefix("aten::")] += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture
def ops_of() -> Callable[[Callable[[], Any]], tuple[Any, Counter[str]]]:
    """What a function gives, and how often it called each operator."""

    def run(work: Callable[[], Any]) -> tuple[Any, Counter[str]]:
        with CountedOps() as counted:
            result = work()
        return result, counted.counts

    return run


@pytest.fixture(scope="session")
def example(load: Callable[[str], ModuleType]) -> Callable[[str], ModuleType]:
    """One of the example programs with a known fault, by name."""
    return lambda name: load(f"examples/bottlenecks/{name}.py")


@pytest.fixture
def traced() -> Callable[[str, str], Case]:
    """`traced("tiny_ops", "workload")`: the recorded trace of an example, with its source."""
    return lambda name, variant: case_of_program(name, variant, "trace")


@pytest.fixture
def evidence_of() -> Callable[..., Case]:
    """`evidence_of(builder, "train.py", text)`: evidence of a golden trace, with the source of one file."""

    def read(builder: Any, path: str | None = None, text: str = "", **more: Any) -> Case:
        modules = () if path is None else (Module.parse(path, textwrap.dedent(text)),)
        return Case(target="test", trace=report_rank(builder.read()), modules=modules, **more)

    return read


@pytest.fixture
def new_builder(trace_tests: ModuleType) -> Any:
    """The class of builders, for tests that need several traces: `new_builder(folder)`."""
    return trace_tests.TraceBuilder


@pytest.fixture
def untraced() -> Callable[[float], Capture]:
    """How a trace was recorded whose steps take so many seconds without the profiler."""
    return lambda step_s: Capture(
        source="workload",
        options=CaptureOptions(),
        num_steps=3,
        step_untraced_s=step_s,
        raw_bytes=0,
        file_bytes=0,
        num_events=0,
    )


@pytest.fixture
def stalling() -> Callable[..., Any]:
    """Fill a builder with steps of 1 ms in which one operator waits 0.3 ms for a kernel, and the device then idles 0.695 ms."""

    def fill(
        builder: Any,
        op: str | None,
        *,
        frame: str = "train.py(4): step",
        copy: str | None = "Memcpy DtoH (Device -> Pinned)",
        call: str = "cudaStreamSynchronize",
        steps: int = 3,
        wait: bool = True,
    ) -> Any:
        for i in range(steps):
            start = i * STEP_US
            builder.annotate(f"ProfilerStep#{i}", start, STEP_US)
            builder.python(frame, start + 1, STEP_US - 2)
            builder.op("aten::mm", start + 10, 15)
            builder.launch("gemm", start + 12, start + 20, 300)
            if wait:
                if op is not None:
                    builder.op(op, start + 40, 300)
                if copy is not None:
                    builder.launch(copy, start + 42, start + 320, 5, cat="gpu_memcpy")
                builder.call(call, start + 50, 280)
            else:  # the next kernel is queued in time
                builder.op("aten::relu", start + 30, 15)
                builder.launch("relu", start + 32, start + 320, 670)
        return builder

    return fill


STEP_S = 0.01
"""Of a profile of the host."""


def _leaves(spent: dict[str, float]) -> list[HostLeaf]:
    """Leaves of `{"kind name": share}`, most first."""
    ordered = sorted(spent.items(), key=lambda item: -item[1])
    return [
        HostLeaf(
            kind=name.partition(" ")[0], name=name.partition(" ")[2] or name, seconds_per_step=share * STEP_S
        )  # type: ignore[arg-type]
        for name, share in ordered
    ]


@pytest.fixture
def sampled() -> Callable[..., Case]:
    """`sampled(text, {4: {"fsync os.fsync": 0.8}}, loops={3: (64, {"python": 0.9})})`: shares of a step by line, and rounds by loop."""

    def case(
        text: str,
        lines: dict[int, dict[str, float]],
        loops: dict[int, tuple[float | None, dict[str, float]]] | None = None,
        **parts: Any,
    ) -> Case:
        module = Module.parse("train.py", textwrap.dedent(text))

        def place(line: int) -> Place:
            found = function_at(Place(file="train.py", line=line), [module])
            return Place(file="train.py", line=line, function=None if found is None else found[1].name)

        profile = HostProfile(
            steps=20,
            samples=1000,
            interval_s=0.001,
            step_s=STEP_S,
            lines=[
                HostLine(
                    where=place(line),
                    own_s=sum(spent.values()) * STEP_S,
                    total_s=sum(spent.values()) * STEP_S,
                    leaves=_leaves(spent),
                    loop=next(
                        (place(start) for start in sorted(loops or {}, reverse=True) if start <= line), None
                    ),
                )
                for line, spent in lines.items()
            ],
            loops=[
                HostLoop(
                    where=place(line),
                    over=module.lines[line - 1].partition(" in ")[2].rstrip(":"),
                    rounds_per_step=rounds,
                    entered_per_step=None if rounds is None else 1.0,
                    total_s=sum(spent.values()) * STEP_S,
                    leaves=_leaves(spent),
                )
                for line, (rounds, spent) in (loops or {}).items()
            ],
        )
        return Case(target="test", host=profile, modules=(module,), **parts)

    return case
