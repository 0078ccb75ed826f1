"""Which cell of a matrix to use, and why not the others. Pure: cells in, advice out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pyrometer.bench.break_even import break_even_steps
from pyrometer.bench.comparison.verdict import Verdict, sentence
from pyrometer.bench.matrix.cell import Cell, settings_label
from pyrometer.bench.matrix.record import Recommendation, Rejection
from pyrometer.bench.measurement import Measurement
from pyrometer.quantity import Bytes, format_bytes, format_interval, format_rate, format_seconds, significant


def recommend(cells: Sequence[Cell]) -> Recommendation | None:
    """The cell with the best throughput among those that are fit for use; `None` when none is.

    Fit is a cell that was measured to the end, whose P99 keeps the workload's deadline, and that is either eager float32 or
    computes the same within its tolerance and was proved faster than eager float32 at its batch size. The throughput of
    the latter is that of eager float32 times the proved speed-up, so that cells of one batch size are ranked by paired
    comparisons only.
    """
    references = {_batch(cell): cell for cell in cells if cell.is_reference and cell.measurement}
    fit = [cell for cell in cells if unfitness(cell) is None]
    throughputs = [_throughput(cell, references.get(_batch(cell))) for cell in fit]
    if not fit:
        return None
    throughput, best = max(zip(throughputs, fit, strict=True), key=lambda pair: pair[0])
    return _recommendation(best, references.get(_batch(best)), throughput)


def no_recommendation(cells: Sequence[Cell]) -> str:
    """Why nothing is recommended, and what comes nearest where only the deadline is in the way."""
    measured = [cell.measurement for cell in cells if cell.measurement is not None]
    if not measured:
        return "no configuration could be measured"
    late = [cell for cell in cells if cell.measurement is not None and _late(cell, cell.measurement)]
    if not late or len(late) < len(measured):
        return "no configuration is fit for use"
    best = min(late, key=lambda cell: cell.measurement.p99_s if cell.measurement else math.inf)
    assert best.measurement is not None
    return (
        f"no configuration keeps the deadline of {format_seconds(best.measurement.deadline_s)}: "
        f"the lowest P99 is {format_seconds(best.measurement.p99_s)}, of {best.label}"
    )


def rejections(cells: Sequence[Cell]) -> list[Rejection]:
    """The cells that are not fit for use, and why."""
    reasons = [(cell.label, unfitness(cell)) for cell in cells]
    return [Rejection(label=label, reason=reason) for label, reason in reasons if reason is not None]


def unfitness(cell: Cell) -> str | None:
    """Why a cell may not be recommended; `None` when it may."""
    if cell.measurement is None:
        return cell.failure or "not measured"
    checks: tuple[Callable[[Cell, Measurement], str | None], ...] = (_unmeasured, _late, _wrong, _not_faster)
    return next((reason for check in checks if (reason := check(cell, cell.measurement)) is not None), None)


def _unmeasured(_cell: Cell, m: Measurement) -> str | None:
    return None if m.complete else f"not measured to the end: {m.failure or 'too little time'}"


def _late(_cell: Cell, m: Measurement) -> str | None:
    if m.deadline_s is None or m.p99_s <= m.deadline_s:
        return None
    return f"P99 {format_seconds(m.p99_s)} misses the deadline of {format_seconds(m.deadline_s)}"


def _wrong(cell: Cell, _m: Measurement) -> str | None:
    error = cell.error
    if error is None or error.within_tolerance:
        return None
    if error.mismatch is not None:
        return f"another result: {error.mismatch}"
    return f"error {error_figure(error.max_rel)} above tolerance {error_figure(error.tolerance)}"


def _not_faster(cell: Cell, _m: Measurement) -> str | None:
    if cell.is_reference:
        return None
    if cell.verdict is None:
        return f"not compared with eager float32: {cell.failure}"
    if cell.verdict.outcome == "faster":
        return None
    return f"not proved faster than eager float32: {sentence(cell.verdict)}"


def extra_bytes(cell: Cell, reference: Cell) -> Bytes | None:
    """Peak memory beyond the reference's, without what only the matrix holds."""
    m, other = cell.measurement, reference.measurement
    if m is None or other is None or m.peak_bytes is None or other.peak_bytes is None:
        return None
    return m.peak_bytes - cell.held_bytes - other.peak_bytes + reference.held_bytes


def error_figure(error: float) -> str:
    """A relative error in few characters.

    >>> error_figure(0.00031), error_figure(0.0), error_figure(0.03)
    ('3e-4', '0', '3e-2')
    """
    mantissa, _, exponent = f"{error:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if error else "0"


def _batch(cell: Cell) -> str | int | None:
    return cell.settings.get("batch_size")


def _throughput(cell: Cell, reference: Cell | None) -> float:
    assert cell.measurement is not None
    if cell.verdict is None or reference is None or reference.measurement is None:
        return cell.measurement.throughput
    return reference.measurement.throughput / cell.verdict.ratio


def _recommendation(best: Cell, reference: Cell | None, throughput: float) -> Recommendation:
    assert best.measurement is not None
    steps, extra = None, None
    if best.verdict is not None and reference is not None and reference.measurement is not None:
        eager_s, compile_s = reference.measurement.median_s, best.measurement.compile_s
        if compile_s is not None:
            steps = break_even_steps(eager_s, eager_s * best.verdict.ratio, compile_s)
        extra = extra_bytes(best, reference)
    return Recommendation(
        label=best.label,
        sentence=_sentence(best, steps, extra),
        throughput=throughput,
        speedup=None if best.verdict is None else 1 / best.verdict.ratio,
        compile_s=best.measurement.compile_s,
        break_even_steps=steps,
        extra_bytes=extra,
    )


def _sentence(best: Cell, steps: int | None, extra: int | None) -> str:
    batch = f" at batch {best.settings['batch_size']}" if "batch_size" in best.settings else ""
    m, verdict = best.measurement, best.verdict
    assert m is not None
    if verdict is None:
        rate = format_rate(m.throughput, f"{m.unit}/s")
        return f"use eager float32{batch}: {rate}, and nothing within tolerance was proved faster"
    varied = {name: value for name, value in best.settings.items() if name != "batch_size"}
    parts = [
        f"use {settings_label(varied) or 'it as written'}{batch}: {_speedup(verdict)} over eager float32"
    ]
    if m.compile_s is not None:
        repaid = "never repaid" if steps is None else f"repaid after {steps:,} steps"
        parts[0] += f", {format_seconds(m.compile_s)} compile {repaid}"
    if extra is not None:
        parts.append(f"memory {'+' if extra >= 0 else ''}{format_bytes(extra)}")
    if best.error is None:
        parts.append("error not judged, since the outputs are random")
    else:
        parts.append(
            f"error {error_figure(best.error.max_rel)} (within {error_figure(best.error.tolerance)})"
        )
    return "; ".join(parts)


def _speedup(verdict: Verdict) -> str:
    bounds = "not bounded"
    if verdict.ci_low and verdict.ci_high:
        bounds = format_interval(1 / verdict.ci_high, 1 / verdict.ci_low)
    return f"{significant(1 / verdict.ratio)}× ({bounds})"
