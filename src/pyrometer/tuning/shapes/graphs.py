"""Making the graphs of buckets: each compiled for itself, and what graph breaks mean for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyrometer.bench.memory import MemoryMeter, meter_for
from pyrometer.tuning.shapes.axes import CallArguments
from pyrometer.tuning.shapes.checking import copied
from pyrometer.tuning.shapes.isolated import CompileSettings, IsolatedGraph, isolates_recompiles
from pyrometer.tuning.shapes.passes import device_of, timed
from pyrometer.tuning.shapes.store import Bucket
from pyrometer.workload.state import kept_module, preserved_rng

NO_GRAPH = (
    "torch.compile makes no graph of the model (it may be disabled, or the model made of what Dynamo leaves alone, such as "
    "torch.nn.LSTM); it is called as it is, unpadded"
)


@dataclass(eq=False)
class GraphMaker:
    """Compiles one model, a graph for each bucket and one for any size.

    Attributes:
        model: a module or a function.
        settings: how it is compiled.
        meter: reads the memory that compiling takes.
        breaks: whether the model has graph breaks; `None` before the first bucket was compiled.
        plain: torch.compile makes no graph of the model.
        dynamic: one graph for any size.
    """

    model: Callable[..., Any]
    settings: CompileSettings
    meter: MemoryMeter | None
    breaks: bool | None = None
    plain: bool = False
    dynamic: IsolatedGraph = field(init=False)

    def __post_init__(self) -> None:
        self.dynamic = IsolatedGraph(self.model, self.settings, dynamic=True)

    def for_bucket(self) -> IsolatedGraph:
        """A graph that is not compiled yet, for one set of sizes."""
        return IsolatedGraph(self.model, self.settings, broken=bool(self.breaks))

    def compile(self, bucket: Bucket, padded: CallArguments) -> tuple[Any, str | None]:
        """Run the first call of a bucket, which compiles it.

        Returns:
            The output, and what is to be noted of the model: that it breaks, or that nothing is compiled.
        """
        meter = self.meter or meter_for(device_of(padded))
        before = meter.current()
        note = None
        if self.breaks is not None:
            output, bucket.compile_s = timed(bucket.graph.call, padded)
        else:
            (output, num_graphs), bucket.compile_s = timed(bucket.graph.call_counted, padded)
            whole = num_graphs == 1
            if not whole:
                num_graphs = self._keep_apart(bucket, padded, num_graphs)
                note = broken_note(num_graphs) if num_graphs else NO_GRAPH
            self.breaks, self.plain = not whole, num_graphs == 0
        bucket.held_bytes = max(meter.current() - before, 0)
        return output, note

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
            bucket.graph = IsolatedGraph(self.model, self.settings, broken=True)
            self._traceless(bucket.graph, padded)
        return num_graphs

    def _traceless(self, graph: IsolatedGraph, padded: CallArguments) -> int:
        """Run a graph; the number of those that this compiles."""
        state = kept_module(self.model)
        with preserved_rng():
            args, kwargs = copied(padded)
            _, found = graph.call_counted(*args, **kwargs)
        state.restore()
        return found


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
