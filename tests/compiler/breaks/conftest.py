"""Runs a program under the collector, and reads what became of it."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from pyrometer.compiler.breaks.frames import FrameCounts
from pyrometer.compiler.breaks.read import count_frames, read_breaks, read_skips
from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.log import CompileLog

PROGRAMS = Path(__file__).with_name("programs.py")


def load(file: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def programs() -> ModuleType:
    return load(PROGRAMS, "programs_with_breaks")


@dataclass
class Counting:
    """The eager backend, with a count of the graphs that it was given."""

    graphs: int = 0
    num_ops: list[int] = field(default_factory=list)

    def __call__(self, module: Any, inputs: Any) -> Any:
        self.graphs += 1
        self.num_ops.append(sum("call" in node.op for node in module.graph.nodes))
        return module.forward


@dataclass(frozen=True)
class Seen:
    log: CompileLog

    @property
    def breaks(self) -> list[Break]:
        return read_breaks(self.log)

    @property
    def roots(self) -> list[Break]:
        return [graph_break for graph_break in self.breaks if not graph_break.chained]

    @property
    def only(self) -> Break:
        (graph_break,) = self.breaks
        return graph_break

    @property
    def found(self) -> list[tuple[str | None, int]]:
        return [(root.id, root.line) for root in self.roots]

    @property
    def skips(self) -> list[SkippedFrame]:
        return read_skips(self.log)

    @property
    def counts(self) -> FrameCounts:
        return count_frames(self.log)


@pytest.fixture
def watch() -> Callable[..., Seen]:
    """Run something under the collector; `raises` is the error that it must end in."""

    def run(work: Callable[[], Any], raises: type[Exception] | None = None) -> Seen:
        expected = contextlib.nullcontext() if raises is None else pytest.raises(raises)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of what it cannot trace
            with collect() as collector, expected:
                work()
        log = collector.log()
        assert not log.num_faults
        return Seen(log)

    return run


@pytest.fixture
def see(watch: Callable[..., Seen]) -> Callable[..., Seen]:
    """Compile a program for the eager backend and call it once."""

    def run(program: Any, *args: Any, raises: type[Exception] | None = None, **options: Any) -> Seen:
        compiled = torch.compile(program, **{"backend": "eager", **options})
        return watch(lambda: compiled(*args), raises)

    return run


@pytest.fixture
def counting() -> Counting:
    return Counting()
