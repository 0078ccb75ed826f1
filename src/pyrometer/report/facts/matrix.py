"""What a `Matrix` says: which configuration to use, and every figure beside it."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.matrix.axes import AXES
from pyrometer.bench.matrix.cell import Cell, settings_label
from pyrometer.bench.matrix.recommendation import error_figure
from pyrometer.bench.matrix.record import Matrix
from pyrometer.quantity import (
    counted,
    format_bytes,
    format_interval,
    format_rate,
    format_seconds,
    significant,
)
from pyrometer.report.facts.layout import Table

BEST = "●"
LEGEND = f"{BEST} best · = no change · ~ undecided · ! error above the tolerance"
HEAT_STEPS = (0.02, math.log(1.25), math.log(2.0))
"""Differences in ln ratio at which a cell of the heat map gets a stronger colour."""


class Heat(NamedTuple):
    """One place of the heat map."""

    figure: str
    note: str
    shade: str
    """`faster-1` to `faster-3`, `slower-1` to `slower-3`, `same`, or `none` where nothing was compared."""


class HeatMap(NamedTuple):
    """Speed-ups over eager float32: the last axis across, the others down."""

    across: list[str]
    rows: list[tuple[str, list[Heat]]]


def headline(matrix: Matrix) -> str:
    """The answer: what to use."""
    return matrix.answer


def subtitle(matrix: Matrix) -> str:
    """How many configurations were run, and what is missing."""
    parts = [matrix.name, counted(len(matrix.cells), "configuration") + ", each in a fresh process"]
    if matrix.num_reused:
        parts.append(f"{matrix.num_reused} from an earlier run of this command")
    if matrix.num_missing:
        parts.append(f"{matrix.num_missing} not run")
    if matrix.interrupted:
        parts.append("interrupted")
    return " · ".join([*parts, f"took {format_seconds(matrix.elapsed_s)}"])


def main_table(matrix: Matrix) -> Table:
    """A row per configuration with the figures that decide; for the marks see `LEGEND`."""
    columns = ("variant", "step", f"{matrix.unit}/s", "over eager", "output error", "compile")
    return Table(columns, [_main_row(matrix, cell) for cell in matrix.cells])


def tail_table(matrix: Matrix) -> Table:
    """How steady and how cold every configuration is."""
    columns = ("variant", "P90", "P95", "P99", "first call", "warm-up")
    return Table(columns, [_tail_row(cell) for cell in matrix.cells])


def cost_table(matrix: Matrix) -> Table:
    """What every configuration costs in memory and in numbers, and what the compiler made of it."""
    columns = ("variant", "peak memory", "graphs", "breaks", "max diff", "cosine", "took")
    return Table(columns, [_cost_row(cell) for cell in matrix.cells])


def rejection_table(matrix: Matrix) -> Table:
    """What may not be recommended, and why."""
    return Table(
        ("not recommended", "because"),
        [(rejection.label, rejection.reason) for rejection in matrix.rejected],
        frozenset({1}),
    )


def is_best(matrix: Matrix, cell: Cell) -> bool:
    """Whether this is the configuration to use."""
    return matrix.recommendation is not None and matrix.recommendation.label == cell.label


def heat_map(matrix: Matrix) -> HeatMap:
    """The speed-up of every configuration that the axes span."""
    axes = matrix.axes.axes
    last = axes[-1]
    found = {cell.label: cell for cell in matrix.cells}
    across = [settings_label({AXES[last.name]: value}) for value in last.values]
    rows = []
    for values in itertools.product(*(axis.values for axis in axes[:-1])):
        fixed = {AXES[axis.name]: value for axis, value in zip(axes[:-1], values, strict=True)}
        cells = [found[settings_label({**fixed, AXES[last.name]: value})] for value in last.values]
        rows.append((settings_label(fixed), [_heat(matrix, cell) for cell in cells]))
    return HeatMap(across, rows)


def shade(ratio: float) -> str:
    """How strongly a ratio of times is coloured.

    >>> shade(0.5), shade(0.9), shade(1.01), shade(1.5)
    ('faster-3', 'faster-1', 'same', 'slower-2')
    """
    strength = sum(abs(math.log(ratio)) >= step - 1e-9 for step in HEAT_STEPS)
    return "same" if strength == 0 else f"{'faster' if ratio < 1 else 'slower'}-{strength}"


def _main_row(matrix: Matrix, cell: Cell) -> tuple[str, ...]:
    name = f"{BEST} {cell.label} (best)" if is_best(matrix, cell) else cell.label
    if cell.measurement is None:
        return name, "–", "–", _outcome_of_none(cell), "–", "–"
    m = cell.measurement
    speedup = "reference" if cell.is_reference else _speedup(cell.verdict)
    rate = format_rate(m.throughput, "").strip()
    return name, format_seconds(m.median_s), rate, speedup, _error(cell), format_seconds(m.compile_s)


def _tail_row(cell: Cell) -> tuple[str, ...]:
    m = cell.measurement
    if m is None:
        return (cell.label, *["–"] * 5)
    warmup = counted(m.warmup_steps, "step") if m.steady else "not steady"
    return (cell.label, *map(format_seconds, (m.p90_s, m.p95_s, m.p99_s, m.first_call_s)), warmup)


def _cost_row(cell: Cell) -> tuple[str, ...]:
    m, graphs, error = cell.measurement, cell.graphs, cell.error
    peak = None if m is None or m.peak_bytes is None else m.peak_bytes - cell.held_bytes
    counts = ("–", "–") if graphs is None else (str(graphs.num_graphs), str(graphs.num_breaks))
    errors = ("–", "–") if error is None else (error_figure(error.max_abs), f"{error.cosine:.6f}")
    return (cell.label, format_bytes(peak), *counts, *errors, format_seconds(cell.elapsed_s))


def _outcome_of_none(cell: Cell) -> str:
    return "not run" if (cell.failure or "").startswith("not run") else "failed"


def _speedup(verdict: Verdict | None) -> str:
    if verdict is None:
        return "not compared"
    bounds = format_interval(
        None if verdict.ci_high is None else 1 / verdict.ci_high,
        None if verdict.ci_low is None else 1 / verdict.ci_low,
    )
    mark = {"undecided": " ~", "same": " ="}.get(verdict.outcome, "")
    return f"{significant(1 / verdict.ratio)}× ({bounds}){mark}"


def _error(cell: Cell) -> str:
    if cell.error is None:
        return "–"
    figure = "other" if cell.error.mismatch else error_figure(cell.error.max_rel)
    return figure if cell.error.within_tolerance else f"{figure} !"


def _heat(matrix: Matrix, cell: Cell) -> Heat:
    best = " · best" if is_best(matrix, cell) else ""
    if cell.measurement is None:
        return Heat(_outcome_of_none(cell), "", "none")
    rate = format_rate(cell.measurement.throughput, f"{cell.measurement.unit}/s") + best
    if cell.is_reference:
        return Heat("reference", rate, "same")
    if cell.verdict is None:
        return Heat("not compared", rate, "none")
    outcome = cell.verdict.outcome
    figure = f"{significant(1 / cell.verdict.ratio)}×"
    if outcome in {"faster", "slower"}:
        return Heat(figure, rate, shade(cell.verdict.ratio))
    return Heat(f"{figure} {outcome}", rate, "same")
