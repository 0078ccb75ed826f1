"""Which way of compiling suits varying sizes? Every way is built, run over the sample's sizes in turn, and priced."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from pyrometer.bench.comparison.conclusion import conclude
from pyrometer.bench.comparison.decision import DecisionRule
from pyrometer.bench.comparison.trial import Trial, open_sides
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.stage import Progress
from pyrometer.errors import InputError
from pyrometer.evidence.options import silent
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.tuning.shapes.axes import Axes, CallArguments, Dims, Sizes, declare_axes
from pyrometer.tuning.shapes.buckets import Bucketed, ShapeBuckets
from pyrometer.tuning.shapes.checking import PaddingError
from pyrometer.tuning.shapes.isolated import CompileSettings, IsolatedGraph
from pyrometer.tuning.shapes.learning import given_plan, learn_plan, plan_of
from pyrometer.tuning.shapes.masks import DETECT, NAMES, Mask
from pyrometer.tuning.shapes.planning import measured_cost, plan_edges
from pyrometer.tuning.shapes.policy import BucketPolicy
from pyrometer.tuning.shapes.recommendation import advice_of
from pyrometer.tuning.shapes.record import BucketPlan, EdgePlan, ShapeStrategies, StrategyResult
from pyrometer.tuning.shapes.rivals import Run, best_way, fastest
from pyrometer.tuning.shapes.sample import Shapes, inputs_like, read_sample, sizes_in, varying_dims
from pyrometer.tuning.shapes.strategies import (
    Compiling,
    Static,
    conditions,
    make_ready,
    marked,
    run_pass,
    uses_caches,
    warm_up,
)
from pyrometer.workload.call import Call
from pyrometer.workload.failure import described
from pyrometer.workload.inference import Inference
from pyrometer.workload.inputs import as_arguments
from pyrometer.workload.state import inference_mode
from pyrometer.workload.workload import Workload

STRATEGIES = ("eager", "dynamic", "buckets", "one_size", "mark_dynamic", "static")
"""In the order in which they are built."""
ALWAYS = frozenset({"eager", "dynamic", "buckets", "one_size"})
"""Those that are measured whatever the budget: without them nothing can be recommended."""

NUM_SIZES = 6
COMPILE_SHARE = 0.6


def recommend_shapes(
    work: Workload | nn.Module | Callable[..., Any],
    sample: str | Path | Iterable[Shapes],
    *,
    inputs: Any = None,
    dims: Dims | None = None,
    mask: Mask | str | None = DETECT,
    pad_values: Mapping[str, float] | None = None,
    expected_calls: int = 10_000,
    max_graphs: int = 8,
    strategies: Iterable[str] = STRATEGIES,
    backend: Any = "inductor",
    mode: str | None = None,
    budget_s: Seconds = 120.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> ShapeStrategies:
    """Measure eager, static, bucketed and dynamic graphs, and padding to one size, over a sample's sizes, and recommend one.

    A pass runs the model once at each of up to six sizes, taken at equal steps of the sample's distribution; passes of all ways
    are run in turn, in blocks of random mirrored order. What each way costs to compile is measured too, each from an empty
    Inductor cache of its own and after a small function has warmed the compiler up, so that no way finds what another left; of
    static graphs, which the sample may need many of, it is extrapolated from those that were compiled.

    Args:
        work: an `Inference` workload, or a model or function with `inputs`.
        sample: a file of shapes (`read_sample`), or the shapes.
        inputs: of one call, where `work` is no workload: a tensor, a tuple or a dict.
        dims: what varies, as for `ShapeBuckets`; by default what differs within the sample.
        mask: as for `ShapeBuckets`.
        pad_values: as for `ShapeBuckets`.
        expected_calls: over which compiling has to pay.
        max_graphs: most buckets.
        strategies: which ways to try; eager is always among them.
        backend: of torch.compile.
        mode: of torch.compile.
        budget_s: neither marked nor static graphs are begun after 60 % of it, and no new block after all of it.
        seed: of the order of the blocks and of the values in the inputs.
        progress: told how far it is.

    Raises:
        InputError: the sample or the workload cannot be used, or nothing varies.
        UserProgramError: the model raised, not compiled.
    """
    unknown = sorted(set(strategies) - set(STRATEGIES))
    if unknown or not budget_s > 0 or expected_calls < 1:
        raise InputError(
            f"strategies {unknown}, budget {budget_s} s, {expected_calls} calls: legal are {', '.join(STRATEGIES)}, a positive "
            "budget and at least one call"
        )
    shapes = read_sample(sample) if isinstance(sample, (str, Path)) else [dict(one) for one in sample]
    with _opened(work, inputs) as (model, example, device):
        dims = dims if dims is not None else varying_dims(shapes)
        if not dims:
            raise InputError(
                f"sample: all {len(shapes)} calls have the same shapes; nothing varies, so compile as is"
            )
        axes = declare_axes(model, dims, pad_values)
        study = _Study(
            model=model,
            axes=axes,
            device=device,
            settings=CompileSettings(backend, mode),
            expected_calls=expected_calls,
            max_graphs=max_graphs,
            mask=mask,
            budget_s=budget_s,
            seen=sizes_in(axes, shapes),
            calls=_calls(axes, example, shapes, seed),
            progress=progress or silent,
        )
        study.build([name for name in STRATEGIES if name == "eager" or name in set(strategies)])
        study.compare(seed)
        return study.advice(shapes)


@dataclass
class _Study:
    """Builds the strategies, times them in turn, and draws the conclusion."""

    model: Callable[..., Any]
    axes: Axes
    device: torch.device
    settings: CompileSettings
    expected_calls: int
    max_graphs: int
    mask: Mask | str | None
    budget_s: Seconds
    seen: Counter[Sizes]
    calls: list[CallArguments]
    progress: Progress
    ready: dict[str, tuple[Run, Compiling]] = field(default_factory=dict)
    results: dict[str, StrategyResult] = field(default_factory=dict)
    plan: BucketPlan | None = None
    edges: EdgePlan | None = None

    def __post_init__(self) -> None:
        self._start = time.monotonic()

    def build(self, names: list[str]) -> None:
        """Compile every strategy; what fails or no longer fits into the budget says so in its result."""
        warm = not uses_caches(self.settings)
        for number, name in enumerate(names):
            self.progress(COMPILE_SHARE * number / len(names), f"compiling {name}")
            if name not in ALWAYS and self._elapsed_s > COMPILE_SHARE * self.budget_s:
                reason = (
                    f"not measured: the budget of {format_seconds(self.budget_s)} was used up by compiling"
                )
                self.results[name] = StrategyResult(name=name, failure=reason)
                continue
            try:
                if name != "eager" and not warm:
                    warm_up(self.settings, self.device)
                    warm = True
                run = self._way(name)
                self.ready[name] = run, make_ready(run, self.calls, self.settings)
            except Exception as error:
                if name == "eager":
                    raise
                what = str(error) if isinstance(error, PaddingError) else described(error)
                self.results[name] = StrategyResult(name=name, failure=what)

    def compare(self, seed: int) -> None:
        """Run passes of all strategies that are ready in turn."""
        works = [
            Call(partial(run_pass, run, self.calls), name=name, device=self.device)
            for name, (run, _) in self.ready.items()
        ]
        left_s = max(self.budget_s - self._elapsed_s, 0.1 * self.budget_s)
        with contextlib.ExitStack() as stack:
            sides = open_sides(stack, works)
            rule = DecisionRule(num_comparisons=max(len(works) - 1, 1))
            trial = Trial(sides, rule, left_s, seed, self._later)
            trial.run()
            times = np.concatenate(trial.blocks.times(0)) if trial.blocks.rows else [sides[0].first_call_s]
            eager_s = float(np.median(times)) / len(self.calls)
            for place, name in enumerate(self.ready):
                verdict = conclude(trial, place) if place else None
                # The ratio is that of paired blocks: steadier than a mean of this side's own times would be.
                ratio = verdict.ratio if verdict is not None else 1.0
                self.results[name] = self._result(name, eager_s * ratio, verdict)

    def advice(self, shapes: list[dict[str, tuple[int, ...]]]) -> ShapeStrategies:
        """The table and the recommendation."""
        totals = {name: result.total_s for name, result in self.results.items() if result.total_s is not None}
        chosen = self.results[best_way(totals)]
        return ShapeStrategies(
            strategies=[self.results[name] for name in STRATEGIES if name in self.results],
            recommended=chosen.name,
            advice=advice_of(chosen, list(self.results.values()), self.expected_calls),
            expected_calls=self.expected_calls,
            num_sizes=len(self.seen),
            num_samples=len(shapes),
            compiled_how=conditions(self.settings),
            measured_sizes=[
                {name: [*self.axes.get(name, call).shape] for name in self.axes.inputs} for call in self.calls
            ],
            plan=self.plan if "buckets" in self.ready else None,
            pareto=self.edges.pareto if self.edges is not None else [],
        )

    @property
    def _elapsed_s(self) -> Seconds:
        return time.monotonic() - self._start

    def _later(self, share: float, what: str) -> None:
        self.progress(COMPILE_SHARE + (1 - COMPILE_SHARE) * share, what)

    def _way(self, name: str) -> Run:
        if name == "eager":
            return self.model
        if name == "dynamic":
            return IsolatedGraph(self.model, self.settings, dynamic=True).call
        if name == "mark_dynamic":
            return marked(self.model, self.settings, self.axes)
        if name == "static":
            return Static(self.model, self.settings, self.axes)
        if name == "one_size":
            return self._bucketed(self._one_size())
        self.plan = self._planned()
        return self._bucketed(self.plan)

    def _bucketed(self, plan: BucketPlan) -> Bucketed:
        buckets = ShapeBuckets(
            self.model,
            self.axes.inputs,
            plan=plan,
            mask=self.mask,
            pad_values=self.axes.pad_values,
            max_graphs=max(self.max_graphs, len(plan.cells)),
            check_every=0,
            measure=False,
            backend=self.settings.backend,
            mode=self.settings.mode,
        )
        return Bucketed(buckets)

    def _one_size(self) -> BucketPlan:
        return plan_of(self.axes.names, [[max(column)] for column in zip(*self.seen, strict=True)], self.seen)

    def _planned(self) -> BucketPlan:
        """Edges by measured step times, and as many as compiling them pays for."""
        if self.axes.edges:
            return given_plan(self.axes, self.seen)
        if len(self.axes.names) > 1:
            return learn_plan(self.axes, self.seen, BucketPolicy(max_graphs=self.max_graphs))
        runner, compiling = self.ready.get("dynamic") or self.ready["eager"]
        times = self._fastest(runner)
        self.edges = plan_edges(
            {sizes[0]: count for sizes, count in self.seen.items()},
            self.max_graphs,
            step_cost=measured_cost(times),
            compile_cost=compiling.seconds / max(compiling.num_graphs, 1) or None,
            expected_calls=self.expected_calls,
        )
        return plan_of(self.axes.names, [self.edges.edges], self.seen)

    def _fastest(self, run: Run) -> dict[int, Seconds]:
        """The fastest of a few calls at each size, in turn, so that no size has the machine's worst moment alone."""
        times = dict[int, Seconds]()
        with inference_mode(True):
            taken = fastest(run, self.calls)
        for call, took_s in zip(self.calls, taken, strict=True):
            size = self.axes.sizes(call)[0]
            times[size] = min(times.get(size, took_s), took_s)
        return times

    def _result(self, name: str, step_s: Seconds, verdict: Verdict | None) -> StrategyResult:
        run, compiling = self.ready[name]
        num_graphs, compile_s, estimated = compiling.num_graphs, compiling.seconds, False
        padding, notes = 0.0, []
        if name == "eager":
            num_graphs, compile_s = 0, 0.0
        if isinstance(run, Static):
            share = len(self.seen) / max(len(run.graphs), 1)
            estimated = share > 1
            num_graphs, compile_s = round(num_graphs * share), compile_s * share
            notes.append(f"torch.compile(dynamic=False) needs recompile_limit={len(self.seen)} for that")
        if isinstance(run, Bucketed) and run.buckets.plan is not None:
            statistics = run.buckets.statistics()
            padding = (run.buckets.plan.padding_share or 0.0) if statistics.num_graphs else 0.0
            notes += statistics.notes
        if compiling.warm and not uses_caches(self.settings):
            notes.append(f"compile_s is that of a warm cache: {compiling.warm} entries were found")
        return StrategyResult(
            name=name,
            num_graphs=num_graphs,
            compile_s=compile_s,
            compile_estimated=estimated,
            step_s=step_s,
            padding_share=padding,
            total_s=compile_s + self.expected_calls * step_s,
            verdict=verdict,
            note="; ".join(notes),
        )


@contextlib.contextmanager
def _opened(work: Any, inputs: Any) -> Iterator[tuple[Callable[..., Any], CallArguments, torch.device]]:
    """The model in eval mode, the arguments of one call, and their device."""
    if isinstance(work, Workload) and not isinstance(work, Inference):
        raise InputError(
            f"{type(work).__name__}: shapes are compared for a forward pass; give an Inference workload, or a model and inputs"
        )
    if isinstance(work, Workload) == (inputs is not None):
        raise InputError(
            "inputs: give those of one call with a model, and none with a workload, which has its own"
        )
    if isinstance(work, nn.Module):
        work = Inference(work, inputs)
    if isinstance(work, Inference):
        with work.variant(mode="eager").open() as session:
            session.activate()
            arguments = session.prepare()
            yield session.model, (arguments.args, arguments.kwargs), session.device
        return
    given = as_arguments(inputs)
    device = next((tensor.device for tensor in given.tensors()), torch.device("cpu"))
    yield work, (given.args, given.kwargs), device


def _calls(
    axes: Axes, example: CallArguments, shapes: list[dict[str, tuple[int, ...]]], seed: int
) -> list[CallArguments]:
    """Calls at a few sizes that stand for the sample: at equal steps of its distribution."""
    order = sorted(shapes, key=lambda shape: math.prod(next(iter(sizes_in(axes, [shape])))))
    count = min(NUM_SIZES, len({next(iter(sizes_in(axes, [shape]))) for shape in shapes}))
    picked = [order[int((number + 0.5) / count * len(order))] for number in range(count)]
    given = {name: example[0][place] for name, place in axes.positions.items() if place < len(example[0])}
    named = {**given, **example[1]}
    generator = torch.Generator().manual_seed(seed)
    calls: list[CallArguments] = []
    for one in picked:
        values = inputs_like(named, one, generator)
        for name in set(NAMES["lengths"]) & set(one):
            values[name] = torch.full_like(values[name], max(next(iter(sizes_in(axes, [one])))))
        calls.append(axes.replaced(example, {name: values[name] for name in one}))
    return calls
