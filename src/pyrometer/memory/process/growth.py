"""Why a process grew: what is known, what was asked, and what came out."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.memory.process.record import ProcessMemory
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc

Answer = Literal["yes", "no", "unknown"]
Cause = Literal[
    "no growth",
    "tensors",
    "device memory outside of torch",
    "copy-on-write in workers",
    "retention",
    "primitive cache",
    "compile cache",
    "Python objects",
    "native leak",
    "undecided",
]


class Trim(Record, frozen=True, kw_only=True):
    """What giving back the C library's free memory did to the resident size."""

    before_bytes: Bytes
    after_bytes: Bytes


class EnvironmentTrial(Record, frozen=True, kw_only=True):
    """The highest resident size of a program, as it is and with some environment variables set."""

    command: list[str]
    environment: Annotated[dict[str, str], doc("what was set in the second run")]
    peak_bytes: Bytes
    peak_with_bytes: Bytes


class Hints(Record, frozen=True, kw_only=True):
    """What the caller knows besides the readings; null where nobody looked."""

    tensor_growth_bytes: Annotated[
        Bytes | None, doc("growth of live tensors on the CPU between the readings")
    ] = None
    num_shapes: Annotated[int | None, doc("different shapes of inputs between the readings")] = None
    num_compilations: Annotated[int | None, doc("graphs that were compiled between the readings")] = None
    trim: Annotated[Trim | None, doc("of the heap, after the second reading")] = None
    trial: Annotated[EnvironmentTrial | None, doc("with oneDNN's caches off")] = None
    command: Annotated[list[str], doc("that runs the program, for the commands of the advice")] = []


class Branch(Record, frozen=True, kw_only=True):
    """One question of the tree."""

    cause: Cause
    answer: Answer
    evidence: Annotated[str, doc("the figures behind the answer")]
    next_step: Annotated[str | None, doc("what would answer an unknown, or mend a yes")] = None


class GrowthExplanation(Record, frozen=True, kw_only=True):
    """Why a process grew between two readings."""

    cause: Cause
    summary: str
    growth_bytes: Annotated[Bytes, doc("of the resident size, of the process alone")]
    bytes_per_step: Annotated[float | None, doc("null where the steps between were not counted")]
    branches: Annotated[list[Branch], doc("in the order of the questions; the first yes decides")]
    before: ProcessMemory
    after: ProcessMemory
