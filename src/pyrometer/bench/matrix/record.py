"""The cells of a matrix, and which of them is to be used."""

from __future__ import annotations

from typing import Annotated

from pyrometer.bench.matrix.axes import Axes
from pyrometer.bench.matrix.cell import Cell
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc


class Rejection(Record, frozen=True, kw_only=True):
    """A cell that may not be recommended."""

    label: str
    reason: str


class Recommendation(Record, frozen=True, kw_only=True):
    """The configuration to use."""

    label: Annotated[str, doc("label of the cell")]
    sentence: Annotated[str, doc("the advice in one sentence")]
    throughput: Annotated[float, doc("units per second: the reference's times the proved speed-up")]
    speedup: Annotated[
        float | None, doc("over eager float32 at the same batch size; null for the reference itself")
    ]
    compile_s: float | None
    break_even_steps: Annotated[
        int | None, doc("steps after which compilation is repaid; null where nothing compiled")
    ]
    extra_bytes: Annotated[int | None, doc("peak memory beyond that of the reference")]


class Matrix(Record, frozen=True, kw_only=True):
    """A workload in many configurations."""

    name: Annotated[str, doc("the workload")]
    unit: str
    axes: Axes
    cells: list[Cell]
    answer: Annotated[str, doc("what to use, or why nothing is recommended")]
    recommendation: Annotated[Recommendation | None, doc("null when no cell is fit for use")]
    rejected: Annotated[list[Rejection], doc("cells that are not fit for use, and why")]
    num_reused: Annotated[
        int, doc("cells that an earlier, unfinished run of the same command had filled")
    ] = 0
    num_missing: Annotated[int, doc("cells that there was no time for, or that Ctrl-C left out")] = 0
    interrupted: bool = False
    elapsed_s: Seconds
