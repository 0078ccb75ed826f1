"""The ways to compile a model whose sizes vary, each as a function of its own that shares nothing with the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.private import marks
from pyrometer.compiler.private.fresh_cache import fresh_cache
from pyrometer.quantity import Seconds
from pyrometer.tuning.shapes.axes import Axes, CallArguments, Sizes
from pyrometer.tuning.shapes.isolated import CompileSettings, IsolatedGraph, with_own_code
from pyrometer.tuning.shapes.passes import timed
from pyrometer.tuning.shapes.rivals import Run
from pyrometer.workload.state import inference_mode


class Static:
    """A graph for each size; what `dynamic=False` gives with a recompile limit that is high enough."""

    def __init__(self, model: Callable[..., Any], settings: CompileSettings, axes: Axes) -> None:
        self._model, self._settings, self._axes = model, settings, axes
        self.graphs: dict[Sizes, IsolatedGraph] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph of the call's sizes."""
        sizes = self._axes.sizes((args, kwargs))
        if sizes not in self.graphs:
            self.graphs[sizes] = IsolatedGraph(self._model, self._settings)
        return self.graphs[sizes].call(*args, **kwargs)


def marked(model: Callable[..., Any], settings: CompileSettings, axes: Axes) -> Run:
    """One graph in which only the declared dimensions are open, by marks on views of the caller's inputs."""
    compiled: Any = torch.compile(with_own_code(model), **settings.arguments())

    def run(*args: Any, **kwargs: Any) -> Any:
        views = {}
        for name, dims in axes.inputs.items():
            value = axes.get(name, (args, kwargs))
            if value is not None:
                views[name] = value.view_as(value)
                marks.mark_dynamic(views[name], dims)
        new_args, new_kwargs = axes.replaced((args, kwargs), views)
        return compiled(*new_args, **new_kwargs)

    return run


@dataclass(frozen=True)
class Compiling:
    """What making a strategy ready took."""

    seconds: Seconds
    num_graphs: int
    warm: int


def run_pass(run: Run, calls: Sequence[CallArguments]) -> None:
    """Run every call once, without gradients."""
    with inference_mode(True):
        for args, kwargs in calls:
            run(*args, **kwargs)


def uses_caches(settings: CompileSettings) -> bool:
    """Whether a backend compiles into caches on disk."""
    return isinstance(settings.backend, str) and settings.backend == "inductor"


def conditions(settings: CompileSettings) -> str:
    """In which state of torch's caches strategies are compiled, in words."""
    if not uses_caches(settings):
        return f"backend {getattr(settings.backend, '__name__', settings.backend)}: compile times are taken as it gives them"
    return "each way was compiled into an empty cache of its own, after a small function had warmed the compiler up"


def warm_up(settings: CompileSettings, device: torch.device) -> None:
    """Compile a small function, so that the first strategy does not pay for loading the compiler."""
    with fresh_cache(), inference_mode(True):
        IsolatedGraph(lambda x: torch.relu(x) + 1, settings).call(torch.ones(4, 8, device=device))


def make_ready(run: Run, calls: Sequence[CallArguments], settings: CompileSettings) -> Compiling:
    """Run calls until nothing is compiled any more, from an empty cache, and tell what that took."""

    def pass_s() -> Seconds:
        return timed(run_pass, ((run, calls), {}))[1]

    with fresh_cache() if uses_caches(settings) else contextlib.nullcontext():
        with collect() as collector:
            first_s = pass_s()
            log = collector.log()
        again_s = min(pass_s(), pass_s())
    found = sum(1 for _ in log.of("aotautograd_cache_hit", "fx_graph_cache_hit"))
    graphs = sum(1 for _ in log.of("dynamo_output_graph"))
    return Compiling(max(first_s - again_s, 0.0), graphs, found)
