"""The ways to compile a model whose sizes vary, each as a function of its own that shares nothing with the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Protocol

import torch

from pyrometer.bench.clock import clock_for
from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.private import fresh_cache, marks
from pyrometer.quantity import Seconds
from pyrometer.tuning.shapes.axes import Axes, Sizes
from pyrometer.tuning.shapes.checking import CallArguments
from pyrometer.tuning.shapes.isolated import CompileSettings, IsolatedGraph, with_own_code
from pyrometer.workload.state import inference_mode


class Strategy(Protocol):
    """One way to run a call."""

    name: str

    def call(self, call: CallArguments) -> Any:
        """Run the model."""


@dataclass
class Eager:
    """Not compiled."""

    model: Callable[..., Any]
    name: str = "eager"

    def call(self, call: CallArguments) -> Any:
        """Run the model."""
        return self.model(*call[0], **call[1])


@dataclass
class Static:
    """A graph for each size; what `dynamic=False` gives with a recompile limit that is high enough."""

    model: Callable[..., Any]
    settings: CompileSettings
    axes: Axes
    name: str = "static"
    graphs: dict[Sizes, IsolatedGraph] = field(default_factory=dict)

    def call(self, call: CallArguments) -> Any:
        """Run the graph of the call's sizes."""
        sizes = self.axes.sizes(*call)
        if sizes not in self.graphs:
            self.graphs[sizes] = IsolatedGraph(self.model, self.settings)
        return self.graphs[sizes].call(*call[0], **call[1])


class Dynamic:
    """One graph for any size, `dynamic=True`."""

    name = "dynamic"

    def __init__(self, model: Callable[..., Any], settings: CompileSettings) -> None:
        self._graph = IsolatedGraph(model, settings, dynamic=True)

    def call(self, call: CallArguments) -> Any:
        """Run the graph."""
        return self._graph.call(*call[0], **call[1])


class MarkDynamic:
    """One graph in which only the declared dimensions are open, by marks on the inputs."""

    name = "mark_dynamic"

    def __init__(self, model: Callable[..., Any], settings: CompileSettings, axes: Axes) -> None:
        self._own: FunctionType = with_own_code(model)
        self._compiled: Any = torch.compile(self._own, **settings.arguments())
        self._axes = axes

    def call(self, call: CallArguments) -> Any:
        """Mark the inputs and run the graph; the caller's own tensors are not marked."""
        marked = {}
        for name, dims in self._axes.inputs.items():
            value = self._axes.get(name, *call)
            if value is not None:
                marked[name] = value.view_as(value)
                marks.mark_dynamic(marked[name], dims)
        args, kwargs = self._axes.replaced(*call, marked)
        return self._compiled(*args, **kwargs)


@dataclass(frozen=True)
class Compiling:
    """What making a strategy ready took.

    Attributes:
        seconds: the first pass over all sizes, less a pass in which nothing is compiled.
        num_graphs: that were compiled.
        warm: cache entries of torch that were found; in a cache of its own, those of its own earlier graphs.
    """

    seconds: Seconds
    num_graphs: int
    warm: int


def run_pass(strategy: Strategy, calls: Sequence[CallArguments]) -> None:
    """Run every call once, without gradients."""
    with inference_mode(True):
        for call in calls:
            strategy.call(call)


def uses_caches(settings: CompileSettings) -> bool:
    """Whether a backend compiles into caches on disk."""
    return isinstance(settings.backend, str) and settings.backend == "inductor"


def conditions(settings: CompileSettings) -> str:
    """In which state of torch's caches strategies are compiled, in words."""
    if not uses_caches(settings):
        return f"backend {getattr(settings.backend, '__name__', settings.backend)}: compile times are taken as it gives them"
    lacking = fresh_cache.missing()
    if lacking:
        return f"compile times rest on what torch's caches held, which may favour later ways: {lacking[0]}"
    return "each way was compiled into an empty cache of its own, after a small function had warmed the compiler up"


def warm_up(settings: CompileSettings, device: torch.device) -> None:
    """Compile a small function, so that the first strategy does not pay for loading the compiler."""
    with fresh_cache.fresh_cache(), inference_mode(True):
        IsolatedGraph(lambda x: torch.relu(x) + 1, settings).call(torch.ones(4, 8, device=device))


def make_ready(
    strategy: Strategy, calls: Sequence[CallArguments], device: torch.device, settings: CompileSettings
) -> Compiling:
    """Run a strategy until nothing is compiled any more, from an empty cache, and tell what that took."""
    with fresh_cache.fresh_cache() if uses_caches(settings) else contextlib.nullcontext():
        return _compiled(strategy, calls, device)


def _compiled(strategy: Strategy, calls: Sequence[CallArguments], device: torch.device) -> Compiling:
    clock = clock_for(device)

    def timed() -> Seconds:
        clock.synchronize()
        start = clock.host_ns()
        run_pass(strategy, calls)
        clock.synchronize()
        return (clock.host_ns() - start) * 1e-9

    with collect() as collector:
        first_s = timed()
        log = collector.log()
    again_s = min(timed(), timed())
    found = sum(1 for _ in log.of("aotautograd_cache_hit", "fx_graph_cache_hit"))
    graphs = sum(1 for _ in log.of("dynamo_output_graph"))
    return Compiling(max(first_s - again_s, 0.0), graphs, found)
