"""What recomputing each module costs in time, measured where it happens: in training steps, in turn.

One round runs a step as it is and one step for each layer of the module tree and each policy, with all candidates of the
layer behind checkpointing. A module's cost is the time of its recomputation in the backward pass, plus what its forward pass
takes longer than as it is (keeping some results slows down both), plus its calls' share of what is left: what whole steps take
longer beyond that, such as for putting random states back. Without the last, many small modules would look too cheap.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import nn

from pyrometer.bench.clock import Clock, clock_for
from pyrometer.errors import UserProgramError
from pyrometer.quantity import Seconds
from pyrometer.tuning.checkpointing.building import OptionCost
from pyrometer.tuning.checkpointing.trace import StepTrace
from pyrometer.workload.changes.checkpointing import Applied, CheckpointedForward, module_at
from pyrometer.workload.changes.policies import Policy, kept_operators
from pyrometer.workload.failure import described, user_code
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Session

ROUNDS = 21
MIN_ROUNDS = 3
LATE_ROUNDS = 1
"""Rounds at least where the time was over before there were three: steps are long, or the machine is busy."""
SMALLEST_S = 1e-7
"""A cost of nothing would make all choices alike."""


@dataclass
class Times:
    """Readings of one module, in seconds; one value per step, calls of one step added up."""

    forward: list[Seconds] = field(default_factory=list)
    first: dict[Policy, list[Seconds]] = field(default_factory=lambda: defaultdict(list))
    again: dict[Policy, list[Seconds]] = field(default_factory=lambda: defaultdict(list))


@dataclass
class MeasuredCosts:
    """What was measured.

    Attributes:
        times: by module.
        step_s: of steps as they are.
        overhead_s: by module and policy, the share of what steps take longer beyond what was timed in modules.
        failed: modules, with their policy, that cannot be computed again, and why.
    """

    times: dict[str, Times]
    step_s: list[Seconds]
    overhead_s: dict[tuple[str, Policy], Seconds]
    failed: dict[tuple[str, Policy], str]

    def options(self) -> list[OptionCost]:
        """The cost of each module with each policy that works."""
        return [
            OptionCost(module, policy, self.cost_s(module, policy))
            for module, times in self.times.items()
            for policy in times.again
            if (module, policy) not in self.failed
        ]

    def cost_s(self, module: str, policy: Policy) -> Seconds:
        """What a step takes longer."""
        times = self.times[module]
        return max(_timed_cost(times, policy) + self.overhead_s.get((module, policy), 0.0), SMALLEST_S)

    def spread_s(self, module: str, policy: Policy) -> tuple[Seconds, Seconds]:
        """Quartiles of the recomputation."""
        low, high = np.quantile(self.times[module].again[policy], [0.25, 0.75])
        return float(low), float(high)


def _timed_cost(times: Times, policy: Policy) -> Seconds:
    slower = undisturbed(times.first[policy]) - undisturbed(times.forward)
    return undisturbed(times.again[policy]) + max(slower, 0.0)


def undisturbed(times_s: Sequence[Seconds]) -> Seconds:
    """The median of the faster half, which other programs on the machine disturb least.

    >>> undisturbed([3.0, 1.0, 9.0, 2.0])
    1.5
    """
    faster = sorted(times_s)[: -(-len(times_s) // 2)]
    return float(np.median(faster))


def measure_costs(
    work: Training,
    trace: StepTrace,
    modules: Sequence[str],
    policies: Sequence[Policy],
    *,
    budget_s: Seconds,
    clock: Clock | None = None,
) -> MeasuredCosts:
    """Time the recomputation of candidate modules under the policies that have something to keep in them.

    Raises:
        UserProgramError: the step fails as it is.
    """
    with work.open() as session:
        session.activate()
        timing = _Timing(session, trace, clock or clock_for(session.device))
        sets = _sets(trace, modules, policies)
        timing.warm()
        working = [part for one in sets for part in timing.that_work(one)]
        timing.rounds(working, budget_s)
        return MeasuredCosts(timing.times, timing.step_s, timing.overheads(), timing.failed)


def written_inside(trace: StepTrace, module: str) -> list[str]:
    """Buffers that a module's forward writes to, also those of modules inside; paths as seen from it."""
    prefix = f"{module}."
    return [
        f"{path.removeprefix(prefix)}.{name}" if path != module else name
        for path, names in trace.written.items()
        if path == module or path.startswith(prefix)
        for name in names
    ]


def _sets(trace: StepTrace, modules: Sequence[str], policies: Sequence[Policy]) -> list[dict[str, Policy]]:
    """Modules that may be checkpointed together, none inside of another: by depth among the candidates, and policy."""
    candidates = set(modules)
    depth = {module: len(trace.around(module) & candidates) for module in modules}
    sets = []
    for policy in policies:
        for level in sorted(set(depth.values())):
            chosen = [m for m in modules if depth[m] == level and _keeps_something(trace, m, policy)]
            if chosen:
                sets.append(dict.fromkeys(chosen, policy))
    return sets


def _keeps_something(trace: StepTrace, module: str, policy: Policy) -> bool:
    """Whether a policy differs from full recomputation here: in some modules there is nothing of its kind."""
    if policy == "full":
        return True
    spans = [(trace.calls[call].begin, trace.calls[call].end) for call in trace.calls_of(module)]
    inside = {
        storage.operator
        for storage in trace.storages
        if storage.made and any(begin < storage.born <= end for begin, end in spans)
    }
    kept, products = inside & kept_operators(policy), inside & kept_operators("keep-matmul")
    return bool(kept) and (policy == "keep-matmul" or kept != products)


class _Timing:
    def __init__(self, session: Session, trace: StepTrace, clock: Clock) -> None:
        self._session = session
        self._trace = trace
        self._clock = clock
        self._model: nn.Module = session.model  # type: ignore[attr-defined]
        self.times: dict[str, Times] = {}
        self.step_s: list[Seconds] = []
        self._set_steps: list[tuple[dict[str, Policy], list[Seconds]]] = []
        self.failed: dict[tuple[str, Policy], str] = {}

    def warm(self) -> None:
        """One step as it is, whose failure is the program's own."""
        with user_code("the step"):
            self._session.step(self._session.prepare())

    def that_work(self, chosen: dict[str, Policy]) -> list[dict[str, Policy]]:
        """The set without the modules whose recomputation fails, found by halving."""
        try:
            self._step(chosen, {})
        except UserProgramError as error:
            if len(chosen) == 1:
                [(module, policy)] = chosen.items()
                self.failed[module, policy] = (
                    f"fails when computed again: {described(error.__cause__ or error)}"
                )
                return []
            items = list(chosen.items())
            half = len(items) // 2
            left, right = self.that_work(dict(items[:half])), self.that_work(dict(items[half:]))
            return [left[0] | right[0]] if len(left) == len(right) == 1 else [*left, *right]
        return [chosen]

    def rounds(self, sets: Sequence[dict[str, Policy]], budget_s: Seconds) -> None:
        """Steps of all kinds in turn."""
        modules = list(dict.fromkeys(module for chosen in sets for module in chosen))
        self.times = {module: Times() for module in modules}
        self._set_steps = [(chosen, []) for chosen in sets]
        layers = _layers(sets)
        deadline_ns = self._clock.host_ns() + int(budget_s * 1e9)
        for number in range(ROUNDS):
            late_s = (self._clock.host_ns() - deadline_ns) * 1e-9
            if late_s >= 0 and number >= (MIN_ROUNDS if late_s < budget_s else LATE_ROUNDS):
                return
            self._round(layers)

    def overheads(self) -> dict[tuple[str, Policy], Seconds]:
        """What steps take longer beyond the timed costs, by policy spread evenly over calls."""
        overheads: dict[tuple[str, Policy], Seconds] = {}
        for policy in dict.fromkeys(policy for chosen, _ in self._set_steps for policy in chosen.values()):
            left, calls = 0.0, dict[str, int]()
            for chosen, steps in self._set_steps:
                if policy in chosen.values():
                    timed = sum(_timed_cost(self.times[module], policy) for module in chosen)
                    left += undisturbed(steps) - undisturbed(self.step_s) - timed
                    calls |= {module: len(self._trace.calls_of(module)) for module in chosen}
            each = max(left, 0.0) / max(sum(calls.values()), 1)
            overheads |= {(module, policy): each * number for module, number in calls.items()}
        return overheads

    def _round(self, layers: Sequence[list[str]]) -> None:
        self.step_s.append(self._step({}, {}))
        for layer in layers:
            readings = self._timed_plain(layer)
            for module, marks in readings.items():
                self.times[module].forward.append(self._sum(marks))
        for chosen, steps in self._set_steps:
            stopwatches: dict[str, _Stopwatch] = {m: _Stopwatch(self._clock) for m in chosen}
            steps.append(self._step(chosen, stopwatches))
            for module, policy in chosen.items():
                self.times[module].first[policy].append(self._sum(stopwatches[module].first))
                self.times[module].again[policy].append(self._sum(stopwatches[module].again))

    def _timed_plain(self, modules: Sequence[str]) -> dict[str, list[tuple[Any, Any]]]:
        stopwatches = {module: _Stopwatch(self._clock) for module in modules}
        forwards = []
        for path in modules:
            module = module_at(self._model, path)
            forwards.append((module, _Plain(module, stopwatches[path])))
        with Applied(forwards), user_code("the step"):
            self._session.step(self._session.prepare())
        self._clock.synchronize()
        return {module: stopwatch.first for module, stopwatch in stopwatches.items()}

    def _step(self, chosen: Mapping[str, Policy], stopwatches: Mapping[str, _Stopwatch]) -> Seconds:
        forwards = []
        for path, policy in chosen.items():
            module = module_at(self._model, path)
            watch = stopwatches.get(path) or _Stopwatch(self._clock)
            forwards.append((module, _Timed(module, policy, written_inside(self._trace, path), watch)))
        with Applied(forwards), user_code("the step"):
            prepared = self._session.prepare()
            begin = self._clock.mark()
            self._session.step(prepared)
            end = self._clock.mark()
        self._clock.synchronize()
        return self._clock.between(begin, end)

    def _sum(self, marks: Sequence[tuple[Any, Any]]) -> Seconds:
        return float(sum(self._clock.between(begin, end) for begin, end in marks))


def _layers(sets: Sequence[dict[str, Policy]]) -> list[list[str]]:
    """The sets of modules to be timed as they are: each module once."""
    seen: set[str] = set()
    layers = []
    for chosen in sets:
        layer = [module for module in chosen if module not in seen]
        seen.update(layer)
        if layer:
            layers.append(layer)
    return layers


class _Stopwatch:
    """Marks around the calls of one module, in one step."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.first: list[tuple[Any, Any]] = []
        self.again: list[tuple[Any, Any]] = []

    @contextlib.contextmanager
    def around(self, marks: list[tuple[Any, Any]]) -> Iterator[None]:
        begin = self.clock.mark()
        try:
            yield
        finally:  # a recomputation ends by an exception as soon as everything is there
            marks.append((begin, self.clock.mark()))


class _Plain:
    """A forward that is timed and otherwise as it is."""

    def __init__(self, module: nn.Module, watch: _Stopwatch) -> None:
        self._inner = module.forward
        self._watch = watch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._watch.around(self._watch.first):
            return self._inner(*args, **kwargs)


class _Timed(CheckpointedForward):
    """A checkpointed forward that is timed, in both passes."""

    def __init__(self, module: nn.Module, policy: Policy, buffers: Sequence[str], watch: _Stopwatch) -> None:
        super().__init__(module, policy, buffers)
        self._watch = watch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._watch.around(self._watch.first):
            return super().__call__(*args, **kwargs)

    def contexts(
        self,
    ) -> tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]:
        first, again = super().contexts()
        return first, self._timed(again)

    def _contexts(self) -> dict[str, Any]:
        return {"context_fn": self.contexts}

    @contextlib.contextmanager
    def _timed(self, again: contextlib.AbstractContextManager[Any]) -> Iterator[None]:
        with self._watch.around(self._watch.again), again:
            yield
