"""`ShapeBuckets`: a model whose sizes vary, run by few graphs that are compiled for fixed sizes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyrometer.bench.memory import MemoryMeter, meter_for
from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.record import to_json
from pyrometer.tuning.shapes.axes import Dims, Sizes, declare_axes, parameters_of
from pyrometer.tuning.shapes.checking import CallArguments, ModelState, PaddingError, Reference, copied
from pyrometer.tuning.shapes.fitting import Fitting, start_from
from pyrometer.tuning.shapes.isolated import CompileSettings, IsolatedGraph, isolates_recompiles
from pyrometer.tuning.shapes.learning import calls_by_cell, first_plan, learn_plan
from pyrometer.tuning.shapes.masks import Mask, masking_for
from pyrometer.tuning.shapes.passes import device_of, run_backward, timed
from pyrometer.tuning.shapes.policy import policy_from
from pyrometer.tuning.shapes.record import BucketPlan, BucketStatistics
from pyrometer.tuning.shapes.rivals import WeightedCall, compare_ways, cost_by_time, losing_note
from pyrometer.tuning.shapes.sample import Shapes
from pyrometer.tuning.shapes.signature import signature_of
from pyrometer.tuning.shapes.store import Bucket, BucketStore
from pyrometer.tuning.shapes.tally import Tally
from pyrometer.workload.failure import described
from pyrometer.workload.state import preserved_rng

DETECT = "detect"
DEPENDS = (
    "the result depends on what the padding holds, and is right for what inputs are padded with: such buckets are compared with "
    "the model at calls 2, 4, 8, 16, … too"
)
NO_GRAPH = (
    "torch.compile makes no graph of the model (it may be disabled, or the model made of what Dynamo leaves alone, such as "
    "torch.nn.LSTM); it is called as it is, unpadded"
)
NUM_TIMED = 5
"""Calls of each bucket that are timed, with a synchronisation each, for the statistics."""


class ShapeBuckets:
    """Calls a model at few fixed sizes, each compiled once, by padding its inputs and cutting its outputs.

    Sizes are learned from a sample, or from the first calls, and the edges that cost least are chosen. The first padded
    call of every bucket, and some later ones, are compared with the model itself, unpadded and uncompiled: where padding
    changes the result, `PaddingError` names the operation that lets it in. Calls may come from several threads.

    One call's values may be friendly: a maximum over positive numbers does not mind zeros. So at the first padded call of a
    bucket the model is also run, padded and unpadded, on other values: negated, ten times as large, and alike at all
    positions, in both directions, so that whatever the model makes of padding comes to be the largest for some feature.
    Then the padding itself is filled with large numbers: where that changes the result, more values are tried (of one sign,
    small, large), and later checks come more often. What padding holds in use is never changed, so that a sum over zeros
    passes, right as it is for all values; a maximum, a sort or a softmax without a mask does not. Whole numbers are only
    drawn from those of the call, and masks stay, so give real inputs to the first calls and to `precompile`. What the model
    does only at values unlike all of these is left to the later checks. These runs leave no trace in the model or its modes.

    A model of which torch.compile makes no graph runs unpadded, and the statistics say so. One that writes to its inputs
    writes to padded copies of them.

    Args:
        model: a module or a function; it is not changed.
        dims: the dimensions that vary, by input: `{"x": [1]}`, or `{"ids": {0: "batch", 1: "length"}, …}` with a name for
            each size, where dimensions of one name vary together. With edges in place of names, `{"x": {1: [128, 160, 200]}}`,
            nothing is learned: those are the sizes that are compiled; inputs with equal edges vary together, and a sample
            only tells which combinations `precompile` compiles.
        sample: a file of shapes (see `read_sample`), or the shapes themselves, one mapping per call.
        plan: a plan, or the file that `save` wrote.
        mask: how the model is told what is padding: a parameter's name or a `Mask`; found by its name (`attention_mask`, `mask`,
            `lengths`, …) by default, unless only the rows of a batch vary; `None` for a model that needs none.
        pad_values: what an input is padded with; 0 by default.
        backend: of torch.compile; as are `mode`, `options` and `fullgraph`.
        mode: of torch.compile.
        options: of torch.compile.
        fullgraph: of torch.compile.
        meter: reads the memory that compiling takes; by default the process's or the allocator's.
        policy: settings of `BucketPolicy`, such as `max_graphs=4`.

    Raises:
        InputError: the declaration, sample, plan or a setting cannot be used.

    >>> import torch
    >>> from torch import nn
    >>> lengths = [{"input": (n, 4)} for n in (3, 3, 7, 8)]
    >>> buckets = ShapeBuckets(nn.Linear(4, 2), {"input": [0]}, sample=lengths, max_graphs=2, backend="eager")
    >>> buckets(torch.ones(6, 4)).shape, buckets.plan.axes[0].edges
    (torch.Size([6, 2]), [3, 8])
    """

    def __init__(
        self,
        model: Callable[..., Any],
        dims: Dims,
        *,
        sample: str | Path | Iterable[Shapes] | None = None,
        plan: BucketPlan | str | Path | None = None,
        mask: Mask | str | None = DETECT,
        pad_values: Mapping[str, float] | None = None,
        backend: Any = "inductor",
        mode: str | None = None,
        options: dict[str, Any] | None = None,
        fullgraph: bool = False,
        meter: MemoryMeter | None = None,
        **policy: Any,
    ) -> None:
        if hasattr(model, "_orig_mod") or hasattr(model, "_torchdynamo_orig_callable"):
            raise InputError("model: it is compiled already; give the model itself, buckets compile it")
        self.model = model
        self.policy = policy_from(policy)
        self.axes = declare_axes(model, dims, pad_values)
        masking = masking_for(
            None if mask == DETECT else mask, self.axes, parameters_of(model) or (), detect=mask == DETECT
        )
        self._fitting = Fitting(model, self.axes, masking, Reference(model, self.policy.tolerance))
        self._settings = CompileSettings(backend, mode, options, fullgraph)
        self._store = BucketStore(self.policy.max_graphs, self.policy.max_bytes, self.policy.rare_calls)
        self._dynamic = IsolatedGraph(model, self._settings, dynamic=True)
        self._breaks: bool | None = None
        self._plain = False
        self._meter = meter
        self._lock = threading.Lock()
        self._tally = Tally()
        self._plan, self._sample = first_plan(self.axes, self.policy, sample, plan)

    @property
    def plan(self) -> BucketPlan | None:
        """The edges; `None` while they are learned."""
        return self._plan

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model.

        Raises:
            InputError: an input cannot be padded, or is too long where `too_long="error"`.
            PaddingError: padding changes the result.
        """
        call: CallArguments = args, kwargs
        sizes = self.axes.sizes(args, kwargs)
        number = self._tally.see(sizes)
        plan = self._plan or self._learned(number)
        if self._plain and plan is not None:
            return self._call_plain(call)
        if plan is None or self._tally.refusals:
            return self._call_dynamic("warmup" if plan is None else "fallback", call)
        edges = plan.edges(sizes)
        if edges is None:
            if self.policy.too_long != "crop":
                return self._too_long(plan, sizes, call)
            call, sizes, edges = self._cut(plan, call, sizes)
        try:
            return self._call_bucket(call, sizes, edges)
        except PaddingError as error:
            if self.policy.on_refusal == "raise":
                raise
            self._tally.refusals.append(str(error))
            return self._call_dynamic("fallback", call)

    def precompile(self, *args: Any, backward: bool = False, **kwargs: Any) -> BucketStatistics:
        """Compile, warm and check every bucket that the plan expects, before there is traffic, and measure what they bring.

        Inputs are made from those of one call, repeated or cut. The modes in force now (training, gradients, autocast) are
        compiled for. The model and the random state stay as they are.

        Where edges were learned by size alone they are first chosen anew, and as few as suffice, by the time that steps take
        at some sizes. Then buckets are run in turn with the dynamic graph, with all padded to the largest size, and with the
        model itself: `statistics().ways`, `recommended`, and a note where buckets lose. `measure=False` leaves both out, and
        `backward` the comparison.

        Args:
            args: of one call of the model.
            backward: compile the backward graphs too; gradients of the parameters stay untouched.
            kwargs: of that call.

        Raises:
            InputError: there is no plan yet, or more buckets than `max_graphs`.
            PaddingError: padding changes the result.
        """
        self._cells()
        state = ModelState.of(self.model)
        try:
            with preserved_rng():
                if self.policy.measure:
                    self._plan_by_time((args, kwargs))
                for edges in self._cells():
                    if self._plain:
                        break
                    sizes = self._inside(edges)
                    call = self._fitting.resized((args, kwargs), sizes)
                    output = self._call_bucket(call, sizes, edges, traffic=False)
                    if backward:
                        run_backward(self.model, output)
                if self.policy.measure and not backward and not self._plain:
                    self._compare((args, kwargs))
        finally:
            state.restore()
        return self.statistics()

    def replan(self) -> BucketPlan:
        """Choose the edges anew from all sizes seen so far, and drop the graphs of edges that are gone.

        Raises:
            InputError: nothing was called yet, or the edges are given in `dims`.
        """
        if self.axes.edges:
            raise InputError(
                "replan: the edges are given in dims, so they stay; declare names there to have them chosen"
            )
        plan = learn_plan(self.axes, self._tally.seen(), self.policy)
        kept = {tuple(cell) for cell in plan.cells}
        with self._lock:
            self._plan = plan
            for bucket in self._store:
                if bucket.edges not in kept:
                    self._store.drop(bucket)
        return plan

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON, for `plan=`.

        Raises:
            InputError: there is no plan yet.
        """
        if self._plan is None:
            raise InputError("save: the sizes are still being learned; there is no plan yet")
        with replacing(Path(path)) as beside:
            beside.write_bytes(to_json(self._plan, indent=2))

    def statistics(self) -> BucketStatistics:
        """What happened so far."""
        with self._lock:
            return self._tally.statistics(self._store, self.axes)

    def _learned(self, number: int) -> BucketPlan | None:
        """The plan, once enough calls were seen."""
        if number <= self.policy.learn_calls:
            return None
        with self._lock:
            if self._plan is None:
                self._sample = self._tally.seen()
                self._plan = learn_plan(self.axes, self._sample, self.policy)
            return self._plan

    def _too_long(self, plan: BucketPlan, sizes: Sizes, call: CallArguments) -> Any:
        if self.policy.too_long == "error":
            limits = ", ".join(f"{axis.name} {axis.edges[-1]}" for axis in plan.axes)
            given = ", ".join(f"{name} {size}" for name, size in zip(self.axes.names, sizes, strict=True))
            raise InputError(
                f"{given}: beyond the last edge; legal is up to {limits}; plan with cover={{…}}, or allow "
                'too_long="dynamic" or "crop"'
            )
        return self._call_dynamic("fallback", call)

    def _cut(self, plan: BucketPlan, call: CallArguments, sizes: Sizes) -> tuple[CallArguments, Sizes, Sizes]:
        """The call with what is beyond the last edges cut off, its sizes and their edges."""
        fitting = tuple(min(axis.edges[-1], size) for axis, size in zip(plan.axes, sizes, strict=True))
        edges = plan.edges(fitting)
        assert edges is not None
        self._tally.add("cropped")
        return self._fitting.padded(call, sizes, fitting), fitting, edges

    def _call_dynamic(self, reason: str, call: CallArguments) -> Any:
        self._tally.add(reason)
        return self._dynamic.call(*call[0], **call[1])

    def _call_plain(self, call: CallArguments) -> Any:
        """The model itself, for which torch.compile makes no graph."""
        self._tally.add("fallback")
        return self.model(*call[0], **call[1])

    def _call_bucket(self, call: CallArguments, sizes: Sizes, edges: Sizes, *, traffic: bool = True) -> Any:
        start = time.perf_counter()
        padded = self._fitting.padded(call, sizes, edges)
        signature = signature_of(self.model, *padded)
        copying_s = time.perf_counter() - start
        bucket = self._bucket(edges, signature, traffic=traffic)
        if bucket is None:
            return self._call_dynamic("fallback", call)
        if not bucket.ready or (sizes != edges and self._due(bucket)):
            with bucket.lock:
                output = self._checked(bucket, call, padded, sizes, traffic=traffic)
            if self._plain:
                return output
        else:
            self._tally.add("hits")
            output = self._run(bucket, padded)
        start = time.perf_counter()
        if sizes != edges:
            output = self._fitting.cropped(output, sizes)
        if traffic:
            copying_s += time.perf_counter() - start
            lost = 1 - self.policy.cost(sizes) / self.policy.cost(edges)
            self._tally.serve(bucket, sizes, lost, copying_s)
        return output

    def _bucket(self, edges: Sizes, signature: Any, *, traffic: bool) -> Bucket | None:
        """The bucket of a call, a new one if need be; `None` when its signature is too rare for a graph of its own."""
        with self._lock:
            bucket = self._store.find(edges, signature)
            if bucket is None:
                if not self._store.deserves(edges, signature) and traffic:
                    return None
                bucket = Bucket(edges, IsolatedGraph(self.model, self._settings, broken=bool(self._breaks)))
                self._store.add(signature, bucket)
            bucket.calls += 1
            return bucket

    def _due(self, bucket: Bucket) -> bool:
        """Whether a padded call is to be checked: the first of its bucket, and some of the later ones."""
        every, calls = self.policy.check_every, bucket.calls
        if not bucket.checked:
            return True
        return every > 0 and (calls % every == 0 or (bucket.depends and calls & (calls - 1) == 0))

    def _run(self, bucket: Bucket, padded: CallArguments) -> Any:
        if len(bucket.times_s) >= NUM_TIMED:
            return bucket.graph.call(*padded[0], **padded[1])
        output, seconds = timed(bucket.graph.call, padded)
        bucket.times_s.append(seconds)
        return output

    def _checked(
        self, bucket: Bucket, call: CallArguments, padded: CallArguments, sizes: Sizes, *, traffic: bool
    ) -> Any:
        """Compile where that is still to do, and check the result where anything was padded."""
        state = ModelState.of(self.model)
        try:
            if bucket.ready:
                self._tally.add("hits")
                output = self._run(bucket, padded)
            else:
                output = self._compile(bucket, padded, traffic=traffic)
            if self._plain:
                with self._lock:
                    self._store.drop(bucket)
                return output if not traffic else self._unpadded(bucket, call, sizes, state, output)
            if sizes != bucket.edges and self._due(bucket):
                self._tally.add("checks")
                after = start_from(state, self.model)
                try:
                    error = self._fitting.check(call, padded, sizes, bucket.edges, output=output)
                    if not bucket.checked and self.policy.hostile_values:
                        bucket.depends = self._fitting.challenge(call, padded, sizes, bucket.edges)
                finally:
                    after.restore()
                if bucket.depends:
                    self._tally.note(DEPENDS)
                bucket.checked, bucket.max_error = True, max(bucket.max_error or 0.0, error.max_rel)
        except BaseException as error:
            with self._lock:
                self._store.drop(bucket)
            if isinstance(error, PaddingError):
                state.restore()
            raise
        return output

    def _compile(self, bucket: Bucket, padded: CallArguments, *, traffic: bool) -> Any:
        meter = self._meter or meter_for(device_of(padded))
        before = meter.current()
        (output, num_graphs), bucket.compile_s = timed(self._first_call(bucket), padded)
        if self._breaks is None:
            whole = num_graphs == 1
            if not whole:
                num_graphs = self._keep_apart(bucket, padded, num_graphs)
                self._tally.note(broken_note(num_graphs) if num_graphs else NO_GRAPH)
            self._breaks, self._plain = not whole, num_graphs == 0
            if self._plain:
                return output
        bucket.held_bytes = max(meter.current() - before, 0)
        self._tally.add("misses" if traffic else "precompiled")
        with self._lock:
            self._tally.compile_s += bucket.compile_s
            self._store.trim()
        bucket.ready = True
        return output

    def _first_call(self, bucket: Bucket) -> Callable[..., tuple[Any, int]]:
        """Count the graphs of the first bucket; of the others it is known whether the model breaks."""
        if self._breaks is None:
            return bucket.graph.call_counted
        return lambda *args, **kwargs: (bucket.graph.call(*args, **kwargs), 1)

    def _keep_apart(self, bucket: Bucket, padded: CallArguments, num_graphs: int) -> int:
        """Compile a bucket anew for a model that turned out to break, or to find compiled what it calls; leaves no trace.

        Returns:
            The number of graphs.
        """
        if not num_graphs:
            # Another backend finds nothing in torch's caches, so that what is there already is counted too.
            settings = CompileSettings(lambda graph, _inputs: graph.forward)
            num_graphs = self._traceless(IsolatedGraph(self.model, settings, broken=True), padded)
        if num_graphs:
            bucket.graph = IsolatedGraph(self.model, self._settings, broken=True)
            self._traceless(bucket.graph, padded)
        return num_graphs

    def _traceless(self, graph: IsolatedGraph, padded: CallArguments) -> int:
        """Run a graph; the number of those that this compiles."""
        state = ModelState.of(self.model)
        with preserved_rng():
            args, kwargs = copied(padded)
            _, found = graph.call_counted(*args, **kwargs)
        state.restore()
        return found

    def _unpadded(
        self, bucket: Bucket, call: CallArguments, sizes: Sizes, state: ModelState, output: Any
    ) -> Any:
        """The result of the first call of a model without a graph: run again where its inputs were padded."""
        if sizes == bucket.edges:
            self._tally.add("fallback")
            return output
        state.restore()
        return self._call_plain(call)

    def _plan_by_time(self, call: CallArguments) -> None:
        """Choose the edges anew by what steps take at some sizes, where they were learned by size alone."""
        given = self.axes.edges or self.policy.step_cost is not None
        if given or not self._sample or len(self.axes.names) > 1 or len(self._store):
            return
        try:
            cost = cost_by_time(
                self._dynamic.call,
                lambda size: copied(self._fitting.resized(call, (size,))),
                (size for (size,) in self._sample),
            )
        except Exception as error:  # noqa: BLE001 - whatever the compiler raises: edges stay those by size
            self._tally.note(f"edges were chosen by size, not by time: {described(error)}")
            return
        self.policy = replace(self.policy, step_cost=cost)
        self._plan = learn_plan(self.axes, self._sample, self.policy)

    def _compare(self, call: CallArguments) -> None:
        """Measure buckets against other ways, at a size of each bucket, weighted by how often the sample needs it."""
        cells, plan = self._cells(), self._plan
        assert plan is not None
        needed = calls_by_cell(plan, self._sample)
        calls = [
            WeightedCall(copied(self._fitting.resized(call, self._inside(cell))), needed[cell] or 1)
            for cell in cells
        ]
        largest = tuple(axis.edges[-1] for axis in plan.axes)
        ways: dict[str, Callable[..., Any]] = {
            "buckets": partial(self._padded_to, None),
            "dynamic": self._dynamic.call,
            "eager": self.model,
        }
        one = {"one_size": partial(self._padded_to, largest)} if largest in cells else {}
        self._tally.ways = compare_ways(ways | one, calls)
        if (note := losing_note(self._tally.ways)) is not None:
            self._tally.note(note)

    def _padded_to(self, wanted: Sizes | None, *args: Any, **kwargs: Any) -> Any:
        """What a call costs in its own bucket, or in that of some edges; nothing is counted."""
        call: CallArguments = args, kwargs
        sizes = self.axes.sizes(args, kwargs)
        edges = wanted or (self._plan and self._plan.edges(sizes)) or sizes
        padded = self._fitting.padded(call, sizes, edges)
        bucket = self._store.find(edges, signature_of(self.model, *padded))
        if bucket is None:
            raise InputError(f"no graph is held for {edges} and inputs of this kind")
        return self._fitting.cropped(bucket.graph.call(*padded[0], **padded[1]), sizes)

    def _cells(self) -> list[Sizes]:
        if self._plan is None:
            raise InputError("precompile: the sizes are still being learned; give a sample or a plan")
        cells = [tuple(cell) for cell in self._plan.cells]
        if len(cells) > self.policy.max_graphs:
            raise InputError(
                f"precompile: the plan has {len(cells)} buckets but max_graphs is {self.policy.max_graphs}; raise it, so "
                "that none is dropped again"
            )
        return cells

    def _inside(self, edges: Sizes) -> Sizes:
        """Sizes in the middle of a bucket, so that running them checks the padding."""
        assert self._plan is not None
        return tuple(
            (max((lower for lower in axis.edges if lower < edge), default=0) + edge + 1) // 2
            for axis, edge in zip(self._plan.axes, edges, strict=True)
        )


def broken_note(num_graphs: int) -> str:
    """What graph breaks mean for buckets.

    >>> broken_note(2)[:60]
    'the model has graph breaks, so that every bucket compiles 2 '
    """
    apart = (
        "calls from several threads take turns"
        if isolates_recompiles()
        else "functions behind a break share torch's recompile limit, since this torch cannot keep them apart"
    )
    return f"the model has graph breaks, so that every bucket compiles {num_graphs} graphs; {apart}"
