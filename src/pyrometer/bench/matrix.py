"""The matrix: one workload in every combination of batch size, dtype, compile mode and so on.

Every cell runs in a fresh process, so that what one has compiled, cached or broken cannot reach the next. A cell that fails is
recorded and does not stop the others. Where no cell is eager float32 at some batch size, one is added, because the others
are compared with it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from pyrometer.bench.axes import Axes
from pyrometer.bench.cell import Cell, Settings
from pyrometer.bench.fresh import run_fresh
from pyrometer.bench.matrix_state import MatrixState
from pyrometer.bench.recommendation import Recommendation, recommend
from pyrometer.errors import InputError, PyrometerError
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.record import Record, doc
from pyrometer.workload.target import Target

CELL_S = 5.0
LEAST_CELL_S = 0.5
START_S = 5.0
TIMEOUT_S = 1800.0


class Matrix(Record, frozen=True, kw_only=True):
    """A workload in many configurations."""

    name: Annotated[str, doc("the workload")]
    unit: str
    axes: Axes
    cells: list[Cell]
    recommendation: Annotated[Recommendation | None, doc("null when no cell is fit for use")]
    num_reused: Annotated[int, doc("cells that an earlier, unfinished run of the same command had filled")] = 0
    num_missing: Annotated[int, doc("cells that there was no time for, or that Ctrl-C left out")] = 0
    interrupted: bool = False
    elapsed_s: Seconds


def run_matrix(
    target: Target,
    axes: Axes,
    *,
    budget_s: Seconds | None = None,
    resume_dir: Path | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Matrix:
    """Fill a matrix.

    Without a budget every cell measures for 5 s and compares for 5 s, beyond starting and compiling. A budget is for
    everything: what is left is shared among the cells that are left, no cell is begun after it, and a cell that still
    runs at its end is ended.

    Args:
        target: what to run.
        axes: what to vary.
        budget_s: time for all cells together.
        resume_dir: where finished cells are kept until the whole matrix is; a repeated command goes on from there.
        progress: told how far it is, between cells.

    Raises:
        InputError: a setting that this kind of workload does not have, or a budget that is not positive.
        TargetError: the target does not lead to a workload.
        UserProgramError: the factory raised.
    """
    if budget_s is not None and budget_s <= 0:
        raise InputError(f"budget: got {budget_s} s; it must be positive, for example 10min")
    filling = _Filling(target, axes, budget_s, resume_dir, progress or (lambda _share, _what: None))
    return filling.go()
