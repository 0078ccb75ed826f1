"""What the guard asks of the process of a side, and what it gets: records, one a line."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pyrometer.bench.worker import Run
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc


class Collect(Record, frozen=True, kw_only=True, tag=True):
    """Import the files of this side's tree and list its benchmarks; the first request."""

    tree: Annotated[str, doc("root of the tree, which is the working directory")]
    files: list[str]
    targets: list[str]
    matrix: list[str]
    paths: Annotated[list[str], doc("where the tree is imported from")] = []
    foreign: Annotated[str | None, doc("folder that nothing may be imported from: the user's own tree")] = (
        None
    )
    renamed: Annotated[
        dict[str, str], doc("names that requests use, and those that this side has for them")
    ] = {}


class Open(Record, frozen=True, kw_only=True, tag=True):
    """Set a benchmark up and make its first call; the one before is closed."""

    name: str


class Finish(Record, frozen=True, kw_only=True, tag=True):
    """Read what is known once the blocks have run, and close the benchmark."""


class Count(Record, frozen=True, kw_only=True, tag=True):
    """Count what is the same in every run."""

    name: str
    outputs: Annotated[str, doc("file in which the base leaves its outputs for the head")]
    reference: Annotated[bool, doc("whether this is the base, whose outputs are the reference")]


class Explain(Record, frozen=True, kw_only=True, tag=True):
    """Observe a benchmark in every way."""

    name: str
    budget_s: Seconds
    trace: Annotated[str, doc("file for its trace")]


class Collected(Record, frozen=True, kw_only=True):
    """What a side has."""

    bodies: Annotated[dict[str, str | None], doc("by the names of its benchmarks what each does")]
    failures: Annotated[list[tuple[str, str]], doc("what could not be read, and why")] = []


class Opened(Record, frozen=True, kw_only=True):
    """A benchmark that is ready."""

    kind: Annotated[str, doc("Inference, Training or Call")]
    unit: str
    device: str
    clock: str
    first_call_s: Seconds
    compile_s: Annotated[Seconds | None, doc("null where nothing was compiled, or it is not known")] = None


class Finished(Record, frozen=True, kw_only=True):
    """What the blocks left behind."""

    units_per_step: float
    host_peak_bytes: Bytes
    peak_bytes: Annotated[Bytes | None, doc("allocated on the device, by this benchmark; null on a CPU")] = (
        None
    )
    reserved_bytes: Bytes | None = None
    loader_share: Annotated[float | None, doc("of the step, waiting for data; training only")] = None


Request: TypeAlias = Collect | Open | Run | Finish | Count | Explain
