"""Programs as users write them: run, advised, rewritten and run again."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import itertools
import linecache
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo import config

from pyrometer.advice import Advice
from pyrometer.compiler.advice.advise import with_advice
from pyrometer.compiler.advice.apply import apply_rewrite
from pyrometer.compiler.breaks.read import count_frames, read_breaks
from pyrometer.compiler.breaks.record import Break
from pyrometer.compiler.collecting.collector import collect

_numbers = itertools.count()


@contextlib.contextmanager
def held(setting: Advice) -> Iterator[None]:
    """Run the setting as its user would, and leave it as before."""
    name = re.match(r"torch\._dynamo\.config\.(\w+)", setting.rewrite)[1]
    with config.patch({name: copy.copy(getattr(config, name))}):
        exec(setting.rewrite, {"torch": torch, "logging": logging, "warnings": warnings})
        yield


@dataclass
class Outcome:
    """What compiling one program with some inputs gave."""

    breaks: list[Break]
    graphs: int
    outputs: list[Any]

    @property
    def roots(self) -> list[Break]:
        return [graph_break for graph_break in self.breaks if not graph_break.chained]

    def rewrites(self) -> list[tuple[Break, Advice]]:
        return [(root, advice) for root in self.roots for advice in root.advice if advice.replaces]

    def settings(self) -> list[Advice]:
        return [
            advice
            for root in self.roots
            for advice in root.advice
            if (advice.rewrite and not advice.replaces)
        ]

    def words(self) -> list[Advice]:
        return [advice for root in self.roots for advice in root.advice if not advice.rewrite]


class Program:
    """A module in a file, whose `f` is compiled."""

    def __init__(self, source: str, folder: Path) -> None:
        self.source, self.folder = source, folder
        self.path = folder / f"program_{next(_numbers)}.py"
        self.path.write_text(source)
        spec = importlib.util.spec_from_file_location(self.path.stem, self.path)
        assert spec is not None
        assert spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        sys.modules[self.path.stem] = self.module  # torch imports modules by their names
        spec.loader.exec_module(self.module)
        linecache.checkcache(str(self.path))

    def eager(self, inputs: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [_run(self.module.f, each) for each in inputs]

    def compiled(self, inputs: Sequence[tuple[Any, ...]], setting: Advice | None = None) -> Outcome:
        torch._dynamo.reset()
        with held(setting) if setting else contextlib.nullcontext():
            return self._compiled(inputs)

    def _compiled(self, inputs: Sequence[tuple[Any, ...]]) -> Outcome:
        with collect() as collector, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of functions that it cannot trace
            function = torch.compile(self.module.f, backend="eager")
            outputs = [_run(function, each) for each in inputs]
        log = collector.log()
        return Outcome(with_advice(read_breaks(log)), count_frames(log).graphs, outputs)

    def rewritten(self, graph_break: Break, rewrite: Advice) -> Program:
        return Program(apply_rewrite(self.source, rewrite, graph_break.line), self.folder)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[[str], Program]]:
    before = set(sys.modules)
    yield lambda source: Program(source, tmp_path)
    for name in set(sys.modules) - before:
        if name.startswith("program_"):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def _run(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
    return function(*(tensor.clone() if isinstance(tensor, torch.Tensor) else tensor for tensor in inputs))
