"""`ShapeBuckets`: a model whose sizes vary, run by few graphs that are compiled for fixed sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from pyrometer.bench.memory import MemoryMeter
from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.record import to_json
from pyrometer.tuning.shapes.axes import CallArguments, Dims, Sizes, declare_axes, parameters_of
from pyrometer.tuning.shapes.checking import PaddingError, Reference
from pyrometer.tuning.shapes.fitting import Fitting
from pyrometer.tuning.shapes.graphs import GraphMaker
from pyrometer.tuning.shapes.isolated import CompileSettings
from pyrometer.tuning.shapes.learning import first_plan, learn_plan, plan_of
from pyrometer.tuning.shapes.masks import DETECT, Mask, masking_for
from pyrometer.tuning.shapes.policy import BucketPolicy, policy_from
from pyrometer.tuning.shapes.precompiling import Precompiling
from pyrometer.tuning.shapes.record import BucketPlan, BucketStatistics
from pyrometer.tuning.shapes.sample import Shapes
from pyrometer.tuning.shapes.serving import Serving
from pyrometer.tuning.shapes.store import BucketStore
from pyrometer.tuning.shapes.tally import Tally
from pyrometer.workload.state import kept_module, preserved_rng


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
        chosen = policy_from(policy)
        self.axes = declare_axes(model, dims, pad_values)
        masking = masking_for(mask, self.axes, parameters_of(model) or ())
        self._serving = Serving(
            model,
            self.axes,
            chosen,
            Fitting(model, self.axes, masking, Reference(model, chosen.tolerance)),
            GraphMaker(model, CompileSettings(backend, mode, options, fullgraph), meter),
            BucketStore(chosen.max_graphs, chosen.max_bytes, chosen.rare_calls),
            Tally(),
        )
        self._plan, self._sample = first_plan(self.axes, chosen, sample, plan)

    @property
    def policy(self) -> BucketPolicy:
        """The settings; `precompile` adds what it measured."""
        return self._serving.policy

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
        serving = self._serving
        if serving.instead is not None:
            return serving.run_instead(serving.instead, call)
        route = serving.route(call)
        return self._first_of_its_kind(call) if route is None else serving.follow(route, call)

    def _first_of_its_kind(self, call: CallArguments) -> Any:
        """Run a call of which nothing is known yet, or that is to be checked."""
        serving = self._serving
        sizes = self.axes.sizes(call)
        number = serving.tally.see(sizes)
        plan = self._plan or self._learned(number)
        if serving.graphs.plain and plan is not None:
            return serving.run_plain(call)
        if plan is None or serving.tally.refusals:
            return serving.run_dynamic("warmup" if plan is None else "fallback", call)
        edges = plan.edges(sizes)
        if edges is None:
            if self.policy.too_long != "crop":
                return self._too_long(plan, sizes, call)
            call, sizes, edges = self._cut(plan, call, sizes)
        try:
            return serving.run(call, sizes, edges)
        except PaddingError as error:
            if self.policy.on_refusal == "raise":
                raise
            serving.tally.refusals.append(str(error))
            serving.routes.forget()
            return serving.run_dynamic("fallback", call)

    def precompile(self, *args: Any, backward: bool = False, **kwargs: Any) -> BucketStatistics:
        """Compile, warm and check every bucket that the plan expects, before there is traffic, and measure what they bring.

        Inputs are made from those of one call, repeated or cut. The modes in force now (training, gradients, autocast) are
        compiled for. The model and the random state stay as they are.

        Where edges were learned by size alone they are first chosen anew, and as few as suffice, by the time that steps take
        at some sizes. Then buckets are run in turn with the dynamic graph, with all padded to the largest size, and with the
        model itself: `statistics().ways`, `recommended`, and a note where buckets lose; `when_slower="switch"` gives all calls to the
        way that wins. `measure=False` leaves both out, and `backward` the comparison.

        Args:
            args: of one call of the model.
            backward: compile the backward graphs too; gradients of the parameters stay untouched.
            kwargs: of that call.

        Raises:
            InputError: there is no plan yet, or more buckets than `max_graphs`.
            PaddingError: padding changes the result.
        """
        preparing = self._preparing((args, kwargs))
        state = kept_module(self.model)
        try:
            with preserved_rng():
                if self.policy.measure and (better := preparing.by_time()) is not None:
                    self._serving.policy, self._plan = better
                    preparing = self._preparing((args, kwargs))
                preparing.compile(backward=backward)
                if self.policy.measure and not backward and not self._serving.graphs.plain:
                    self._switch(preparing.compare())
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
        plan = learn_plan(self.axes, self._serving.tally.seen(), self.policy)
        with self._serving.lock:
            self._plan = plan
            self._serving.drop_unless({tuple(cell) for cell in plan.cells})
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
        with self._serving.lock:
            return self._serving.tally.statistics(self._serving.store, self.axes)

    def _preparing(self, call: CallArguments) -> Precompiling:
        if self._plan is None:
            raise InputError("precompile: the sizes are still being learned; give a sample or a plan")
        preparing = Precompiling(self._serving, self._plan, self._sample, call)
        preparing.cells()
        return preparing

    def _switch(self, way: str) -> None:
        """Give all calls to another way than buckets of several sizes."""
        if way == "one_size" and self._plan is not None:
            largest = [axis.edges[-1] for axis in self._plan.axes]
            with self._serving.lock:
                self._plan = plan_of(self.axes.names, [[size] for size in largest], self._sample)
                self._serving.drop_unless({tuple(largest)})
        elif way != "buckets":
            self._serving.instead = self.model if way == "eager" else self._serving.graphs.dynamic.call

    def _learned(self, number: int) -> BucketPlan | None:
        """The plan, once enough calls were seen."""
        if number <= self.policy.learn_calls:
            return None
        with self._serving.lock:
            if self._plan is None:
                self._sample = self._serving.tally.seen()
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
        return self._serving.run_dynamic("fallback", call)

    def _cut(self, plan: BucketPlan, call: CallArguments, sizes: Sizes) -> tuple[CallArguments, Sizes, Sizes]:
        """The call with what is beyond the last edges cut off, its sizes and their edges."""
        fitting = tuple(min(axis.edges[-1], size) for axis, size in zip(plan.axes, sizes, strict=True))
        edges = plan.edges(fitting)
        assert edges is not None
        self._serving.tally.add("cropped")
        return self._serving.fitting.padded(call, sizes, fitting), fitting, edges


class Bucketed(nn.Module):
    """Buckets whose first call compiles all that the plan expects."""

    def __init__(self, buckets: ShapeBuckets) -> None:
        super().__init__()
        self.model = buckets.model
        self.buckets = buckets
        self._is_ready = False

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the bucket of the sizes."""
        if not self._is_ready:
            self.buckets.precompile(*args, **kwargs)
            self._is_ready = True
        return self.buckets(*args, **kwargs)
