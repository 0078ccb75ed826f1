"""A training at other numbers of ranks: what it sends, what the links do, what is predicted, and how that held here."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.quantity import Bytes, Ratio, Seconds
from pyrometer.record import Record, doc

Parallel = Literal["ddp", "fsdp"]
Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "broadcast"]
Binding = Literal["compute", "communication", "stragglers"]


class CollectiveCall(Record, frozen=True, kw_only=True):
    """One collective of a step, as torch issued it."""

    operation: Operation
    bytes: Annotated[Bytes, doc("of the whole message: what is reduced, or what is whole after a gather")]
    at: Annotated[Ratio, doc("when it is issued, as a share of the step's own computing")]


class Schedule(Record, frozen=True, kw_only=True):
    """The collectives of one optimizer step at a number of ranks, from torch itself under a fake process group."""

    ranks: int
    parallel: Parallel
    calls: list[CollectiveCall]
    forward_ends: Annotated[Ratio, doc("share of the step's computing at which the loss is there")]
    backward_ends: Annotated[Ratio, doc("share of the step's computing at which gradients are needed")]
    overlaps: Annotated[bool, doc("whether computing goes on while a collective runs, as on a GPU's streams")]
    wrapping_ratio: Annotated[
        Ratio,
        doc("a step that is wrapped and sends nothing over a plain one: copies into and out of buffers"),
    ] = 1.0
    trained_bytes: Annotated[Bytes, doc("of parameters that are trained")]
    state_bytes: Annotated[Bytes, doc("parameters, gradients and optimizer state of one rank alone")]
    largest_unit_bytes: Annotated[Bytes, doc("of the parameters that are gathered at once")] = 0

    @property
    def sent_bytes(self) -> Bytes:
        """All messages of a step together."""
        return sum(call.bytes for call in self.calls)

    @property
    def num_waits(self) -> int:
        """Times in a step that a rank stands still until the slowest has come: where nothing overlaps, in each collective."""
        return 1 if self.overlaps else max(1, len(self.calls))


class LinkFit(Record, frozen=True, kw_only=True):
    """Latency and bandwidth of one hop, fitted to measured collectives: seconds = alpha x hops + beta x bytes on the wire."""

    alpha_s: Annotated[Seconds, doc("of one hop")]
    beta_s: Annotated[float, doc("seconds per byte")]
    error: Annotated[Ratio, doc("median relative error of the fit at the sizes that were measured")]
    by_operation: Annotated[
        dict[Operation, LinkFit],
        doc(
            "the same for one kind of collective each: no library's are all of them rings; the whole stands for those without"
        ),
    ] = {}

    def of(self, operation: Operation) -> LinkFit:
        """What this kind of collective sees of the link."""
        return self.by_operation.get(operation, self)

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return 1.0 / self.beta_s if self.beta_s else float("inf")


class Links(Record, frozen=True, kw_only=True):
    """What joins the ranks: those of one machine, and the machines."""

    backend: str
    ranks_measured: int
    inside: Annotated[LinkFit, doc("between ranks of one machine")]
    between: Annotated[LinkFit | None, doc("between machines; null where none was measured or given")] = None
    ranks_per_machine: Annotated[int | None, doc("null: all ranks are as near as those measured")] = None


class ScalePrediction(Record, frozen=True, kw_only=True):
    """A step at a number of ranks."""

    ranks: int
    step_s: Seconds
    low_s: Seconds
    high_s: Seconds
    compute_s: Annotated[Seconds, doc("of one rank alone")]
    exposed_s: Annotated[Seconds, doc("communication that computing does not hide")]
    straggler_s: Annotated[Seconds, doc("waiting for the slowest rank of a step")]
    efficiency: Annotated[Ratio, doc("step of one rank over this one, the work per rank being the same")]
    units_per_s: Annotated[float, doc("of all ranks")]
    peak_bytes: Annotated[Bytes | None, doc("of a rank; null where memory was not measured")] = None
    binds: Binding
    cost_per_million: Annotated[float | None, doc("units, at the price that was given")] = None


class ScaleCheck(Record, frozen=True, kw_only=True):
    """A prediction beside a real run of as many processes on this machine."""

    ranks: int
    predicted_s: Seconds
    low_s: Seconds
    high_s: Seconds
    measured_s: Seconds
    alone_s: Annotated[
        Seconds, doc("the step on all processes at once without communication, in the same run")
    ]

    @property
    def error(self) -> Ratio:
        """Predicted over measured, less one."""
        return self.predicted_s / self.measured_s - 1


class Basis(Record, frozen=True, kw_only=True):
    """What predictions rest on."""

    parallel: Parallel
    unit: str
    units_per_step: Annotated[float, doc("of a rank per optimizer step, accumulation included")]
    links: Links
    schedules: Annotated[list[Schedule], doc("one for each number of ranks")]


class Scaling(Record, frozen=True, kw_only=True):
    """All that `scale` found."""

    basis: Basis
    predictions: list[ScalePrediction]
    assumptions: Annotated[list[str], doc("what must hold for the predictions to hold")] = []
    checks: Annotated[list[ScaleCheck], doc("predictions beside real runs on this machine")] = []
