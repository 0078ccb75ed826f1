"""The matrix: one workload in every combination of batch size, dtype, compile mode and so on.

Every cell runs in a fresh process, so that what one has compiled, cached or broken cannot reach the next. A cell that fails is
recorded and does not stop the others. Where no cell is eager float32 at some batch size, one is added, because the others
are compared with it.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pyrometer.bench.fresh import run_fresh
from pyrometer.bench.matrix.axes import Axes
from pyrometer.bench.matrix.cell import Cell, Settings, settings_label
from pyrometer.bench.matrix.recommendation import no_recommendation, recommend, rejections
from pyrometer.bench.matrix.record import Matrix
from pyrometer.bench.matrix.state import MatrixState
from pyrometer.bench.stage import Progress, part_of
from pyrometer.errors import InputError, PyrometerError
from pyrometer.quantity import Seconds
from pyrometer.workload.target import Target

if TYPE_CHECKING:
    from pyrometer.bench.matrix.filling import Survey

CELL_S = 5.0
LEAST_CELL_S = 0.5
START_S = 5.0
TIMEOUT_S = 1800.0
MORE_BUDGET = "repeat the command with a larger --budget to go on"


def run_matrix(
    target: Target,
    axes: Axes,
    *,
    budget_s: Seconds | None = None,
    resume_dir: Path | None = None,
    progress: Progress | None = None,
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
    from pyrometer.bench.matrix.filling import SurveyRequest, survey

    started_s = time.monotonic()
    told = progress or (lambda _share, _what: None)
    told(0.0, "looking at the workload")
    seen = run_fresh(survey, SurveyRequest(spec=target.spec, cells=axes.cells()))
    state = _open_state(resume_dir, target) if resume_dir is not None else None
    end_s = None if budget_s is None else started_s + budget_s
    filling = _Filling(target, _plan(axes.cells(), seen), state, end_s, told)
    filling.go()
    best = recommend(filling.cells)
    return Matrix(
        name=seen.name,
        unit=seen.unit,
        axes=axes,
        cells=filling.cells,
        answer=no_recommendation(filling.cells) if best is None else best.sentence,
        recommendation=best,
        rejected=rejections(filling.cells),
        num_reused=filling.num_reused,
        num_missing=filling.num_missing,
        interrupted=filling.interrupted,
        elapsed_s=time.monotonic() - started_s,
    )


def _open_state(folder: Path, target: Target) -> MatrixState:
    from pyrometer.hardware.environment import read_environment

    return MatrixState(folder, target, read_environment().fingerprint)


class _Planned(NamedTuple):
    settings: Settings
    is_reference: bool


@dataclass
class _Filling:
    """One matrix under way."""

    target: Target
    plan: list[_Planned]
    state: MatrixState | None
    end_s: Seconds | None
    progress: Progress
    cells: list[Cell] = field(default_factory=list)
    num_reused: int = 0
    num_missing: int = 0
    interrupted: bool = False
    _overheads_s: list[Seconds] = field(default_factory=list)

    def go(self) -> None:
        """Fill cell after cell; what is missing at the end says why."""
        try:
            for planned in self.plan:
                self.cells.append(self._next(planned))
        except KeyboardInterrupt:
            self.interrupted = True
            self.cells += [
                self._missing(planned, "interrupted; repeat the command to go on")
                for planned in self.plan[len(self.cells) :]
            ]
        if self.state is not None and not self.num_missing:
            self.state.remove()

    def _next(self, planned: _Planned) -> Cell:
        kept = self.state.load(planned.settings) if self.state is not None else None
        if kept is not None:
            self.num_reused += 1
            return kept
        if self._left_s() < self._overhead_s():
            return self._missing(planned, f"the budget was spent; {MORE_BUDGET}")
        done, num_cells = len(self.cells), len(self.plan)
        lasts_s = self._each_s() * (1 if planned.is_reference else 2) + self._overhead_s()
        tell = part_of(self.progress, done / num_cells, (done + 1) / num_cells, lasts_s)
        tell(0.0, f"cell {done + 1} of {num_cells}: {settings_label(planned.settings)}")
        cell = self._fill(planned)
        if cell.measurement is None and self._left_s() <= 0:
            return self._missing(planned, f"the budget was spent while it ran; {MORE_BUDGET}")
        if self.state is not None:
            self.state.save(cell)
        return cell

    def _fill(self, planned: _Planned) -> Cell:
        from pyrometer.bench.matrix.filling import CellRequest, fill_cell

        started_s, each_s = time.monotonic(), self._each_s()
        request = CellRequest(
            spec=self.target.spec,
            settings=planned.settings,
            is_reference=planned.is_reference,
            measure_s=each_s,
            compare_s=each_s,
        )
        try:
            cell = run_fresh(fill_cell, request, timeout_s=min(self._left_s(), TIMEOUT_S))
        except PyrometerError as error:
            cell = _empty(planned, str(error))
        elapsed_s = time.monotonic() - started_s
        self._overheads_s.append(max(elapsed_s - each_s * (1 if planned.is_reference else 2), 0.0))
        return msgspec.structs.replace(cell, elapsed_s=elapsed_s)

    def _left_s(self) -> Seconds:
        return math.inf if self.end_s is None else self.end_s - time.monotonic()

    def _each_s(self) -> Seconds:
        """Time to measure one cell, and as much again to compare it: what its share leaves after starting and compiling."""
        if self.end_s is None:
            return CELL_S
        share_s = self._left_s() / (len(self.plan) - len(self.cells))
        return max((share_s - self._overhead_s()) / 2, LEAST_CELL_S)

    def _overhead_s(self) -> Seconds:
        """What a cell takes beyond measuring and comparing: starting, loading, compiling."""
        return statistics.median(self._overheads_s) if self._overheads_s else START_S

    def _missing(self, planned: _Planned, why: str) -> Cell:
        self.num_missing += 1
        return _empty(planned, f"not run: {why}")


def _empty(planned: _Planned, failure: str) -> Cell:
    return Cell(
        label=settings_label(planned.settings),
        settings=planned.settings,
        is_reference=planned.is_reference,
        failure=failure,
    )


def _plan(cells: list[Settings], survey: Survey) -> list[_Planned]:
    """The cells in order; at a batch size without eager float32 that is added in front."""
    planned: list[_Planned] = []
    found = {
        _batch(s).get("batch_size")
        for s, is_reference in zip(cells, survey.is_reference, strict=True)
        if is_reference
    }
    for settings, is_reference in zip(cells, survey.is_reference, strict=True):
        batch = _batch(settings)
        if batch.get("batch_size") not in found:
            found.add(batch.get("batch_size"))
            planned.append(_Planned({**batch, **survey.reference}, is_reference=True))
        planned.append(_Planned(settings, is_reference))
    return planned


def _batch(settings: Settings) -> Settings:
    return {name: value for name, value in settings.items() if name == "batch_size"}
