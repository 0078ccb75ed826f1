"""Before there is traffic: edges by measured time, every bucket compiled, and all compared with what they have to beat."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.axes import CallArguments, Sizes
from pyrometer.tuning.shapes.checking import copied
from pyrometer.tuning.shapes.learning import calls_by_cell, learn_plan
from pyrometer.tuning.shapes.passes import run_backward
from pyrometer.tuning.shapes.policy import BucketPolicy
from pyrometer.tuning.shapes.record import BucketPlan
from pyrometer.tuning.shapes.rivals import WeightedCall, best_way, compare_ways, cost_by_time, losing_note
from pyrometer.tuning.shapes.routes import Route
from pyrometer.tuning.shapes.serving import Serving
from pyrometer.tuning.shapes.signature import signature_of
from pyrometer.workload.failure import described


@dataclass(frozen=True)
class Precompiling:
    """Makes buckets ready from one call."""

    serving: Serving
    plan: BucketPlan
    seen: Mapping[Sizes, int]
    call: CallArguments

    def compile(self, *, backward: bool) -> None:
        """Compile, warm and check every bucket that the plan expects."""
        for edges in self.cells():
            if self.serving.graphs.plain:
                break
            sizes = self._inside(edges)
            call = self.serving.fitting.resized(self.call, sizes)
            output = self.serving.run(call, sizes, edges, traffic=False)
            if backward:
                run_backward(self.serving.model, output)

    def cells(self) -> list[Sizes]:
        """The buckets that the plan expects.

        Raises:
            InputError: they are more than may be held.
        """
        cells = [tuple(cell) for cell in self.plan.cells]
        limit = self.serving.policy.max_graphs
        if len(cells) > limit:
            raise InputError(
                f"precompile: the plan has {len(cells)} buckets but max_graphs is {limit}; raise it, so that none is dropped again"
            )
        return cells

    def by_time(self) -> tuple[BucketPolicy, BucketPlan] | None:
        """The policy with what steps take at some sizes, and the edges chosen anew by that.

        Where it is said how many calls are expected, so is what a graph costs to compile, so that the number of buckets is
        the one at which another would no longer pay.

        Returns:
            `None` where edges or costs were given, where several sizes vary, or where steps could not be timed: then a note
            says so.
        """
        serving, policy = self.serving, self.serving.policy
        given = serving.axes.edges or policy.step_cost is not None
        if given or not self.seen or len(serving.axes.names) > 1 or len(serving.store):
            return None
        try:
            cost, compile_s = cost_by_time(
                serving.graphs.dynamic.call,
                lambda size: copied(serving.fitting.resized(self.call, (size,))),
                (size for (size,) in self.seen),
            )
        except Exception as error:  # noqa: BLE001 - whatever the compiler raises: edges stay those by size
            serving.tally.note(f"edges were chosen by size, not by time: {described(error)}")
            return None
        policy = replace(policy, step_cost=cost)
        if policy.expected_calls is not None and policy.compile_cost is None:
            policy = replace(policy, compile_cost=compile_s)
        return policy, learn_plan(serving.axes, self.seen, policy)

    def compare(self) -> str:
        """Measure buckets against other ways, at a size of each bucket, weighted by how often the sample needs it.

        Returns:
            The way that is best; buckets where they could not be compared.
        """
        serving = self.serving
        cells = self.cells()
        needed = calls_by_cell(self.plan, self.seen)
        calls = [
            WeightedCall(copied(serving.fitting.resized(self.call, self._inside(cell))), needed[cell] or 1)
            for cell in cells
        ]
        largest = tuple(axis.edges[-1] for axis in self.plan.axes)
        ways: dict[str, Callable[..., Any]] = {
            "buckets": partial(self._padded_to, None, {}),
            "dynamic": serving.graphs.dynamic.call,
            "eager": serving.model,
        }
        one = {"one_size": partial(self._padded_to, largest, {})} if largest in cells else {}
        costs = compare_ways(ways | one, calls)
        serving.tally.ways = costs
        note = losing_note(costs)
        if note is None:
            return "buckets"
        steps = {way.name: way.step_s for way in costs if way.step_s is not None}
        switched = serving.policy.when_slower == "switch" and "buckets" in steps
        serving.tally.note(f"{note}; when_slower='switch' does so" if not switched else f"{note}, as is done")
        return best_way(steps) if switched else "buckets"

    def _padded_to(
        self, wanted: Sizes | None, known: dict[Hashable, Route], *args: Any, **kwargs: Any
    ) -> Any:
        """What a call costs in its own bucket, or in that of some edges; nothing is counted."""
        signature = signature_of(self.serving.model, args, kwargs)
        route = known.get(signature) or known.setdefault(signature, self._route(wanted, (args, kwargs)))
        padded = route.padded((args, kwargs))
        return route.cropped(route.bucket.graph.call(*padded[0], **padded[1]))

    def _route(self, wanted: Sizes | None, call: CallArguments) -> Route:
        serving = self.serving
        sizes = serving.axes.sizes(call)
        edges = wanted or self.plan.edges(sizes) or sizes
        padded = serving.fitting.padded(call, sizes, edges)
        bucket = serving.store.find(edges, signature_of(serving.model, *padded))
        if bucket is None:
            raise InputError(f"no graph is held for {edges} and inputs of this kind")
        return Route.of(call, sizes, bucket, lost=0.0, fitting=serving.fitting)

    def _inside(self, edges: Sizes) -> Sizes:
        """Sizes in the middle of a bucket, so that running them checks the padding."""
        return tuple(
            (max((lower for lower in axis.edges if lower < edge), default=0) + edge + 1) // 2
            for axis, edge in zip(self.plan.axes, edges, strict=True)
        )
