"""One cell of a matrix: a workload in one configuration, measured, checked and compared."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc

Settings: TypeAlias = dict[str, str | int]
"""What a cell sets, by the names of `Workload.variant`; what is missing is as the user wrote it."""


def settings_label(settings: Settings) -> str:
    """A configuration in words, as its cell is called.

    >>> settings_label({"batch_size": 8, "dtype": "bfloat16", "mode": "default"})
    'batch 8, bfloat16, default'
    """
    threads = "{} thread" if settings.get("threads") == 1 else "{} threads"
    words = {"batch_size": "batch {}", "autocast": "autocast {}", "threads": threads}
    return ", ".join(words.get(name, "{}").format(value) for name, value in settings.items())


class GraphCounts(Record, frozen=True, kw_only=True):
    """What torch.compile made of a program."""

    num_graphs: Annotated[int, doc("graphs that were captured and compiled")]
    num_breaks: Annotated[int, doc("places where a graph had to end early")]


class OutputError(Record, frozen=True, kw_only=True):
    """How far an output is from that of a reference on the same inputs."""

    max_abs: Annotated[float, doc("largest absolute difference")]
    max_rel: Annotated[
        float, doc("largest difference over the largest magnitude of the reference tensor it is in")
    ]
    cosine: Annotated[float, doc("lowest cosine between a tensor and its reference; 1 is the same direction")]
    num_values: Annotated[int, doc("numbers that were compared")]
    tolerance: Annotated[float, doc("largest max_rel that is legal for this dtype")]
    within_tolerance: bool
    mismatch: Annotated[str | None, doc("what cannot be compared by numbers: structure, shape, NaN")] = None
    different: Annotated[
        str | None, doc("how many whole numbers differ, such as chosen classes; null where all are the same")
    ] = None


class Cell(Record, frozen=True, kw_only=True):
    """A workload in one configuration."""

    label: Annotated[str, doc("the configuration in words")]
    settings: Annotated[Settings, doc("what the configuration sets, such as batch_size or mode")]
    is_reference: Annotated[
        bool, doc("eager float32 at this batch size, which the others are compared with")
    ] = False
    measurement: Annotated[Measurement | None, doc("null when the cell failed")] = None
    held_bytes: Annotated[
        Bytes,
        doc("part of the peak memory: the model as written, beside its copy in another dtype or layout"),
    ] = 0
    graphs: Annotated[GraphCounts | None, doc("null when unknown")] = None
    error: Annotated[
        OutputError | None, doc("against the reference; null for the reference, and where outputs are random")
    ] = None
    verdict: Annotated[
        Verdict | None, doc("paired with the reference, in one process; null for the reference")
    ] = None
    failure: Annotated[str | None, doc("why there is no measurement, or no comparison, in one line")] = None
    elapsed_s: Annotated[Seconds, doc("time that the cell's process took, from its start")] = 0.0
