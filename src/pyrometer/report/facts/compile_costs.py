"""What compiling costs, and what it brings against eager."""

from __future__ import annotations

from pyrometer.bench.matrix.cell import OutputError
from pyrometer.compiler.costs.record import CompileCost
from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import (
    counted,
    format_ratio,
    format_seconds,
    significant,
)
from pyrometer.report.facts.layout import Fact, Section, Table, percent


def effect(cost: CompileCost) -> str:
    """The ratio of compiled to eager steps in words; empty where it is not known."""
    if cost.ratio is None:
        return ""
    if cost.ci_low is None or cost.ci_high is None:
        return "against eager undecided"  # too few paired steps for a ratio that could be told
    if cost.outcome in {"faster", "slower"}:
        return f"{format_ratio(cost.ratio, cost.ci_low, cost.ci_high)} than eager"
    text = "as fast as eager" if cost.outcome == "same" else "against eager undecided"
    return f"{text}: {_its_time(cost.ratio, cost.ci_low, cost.ci_high)}"


def _its_time(ratio: float, low: float, high: float) -> str:
    return f"{significant(ratio)}× its time ({significant(low)}–{significant(high)})"


def compiling(report: CompileReport) -> Section:
    """The chapter of the first step, the steady steps, what pays, and the phases of the compiler."""
    cost = report.cost
    facts = [
        Fact("first step", format_seconds(cost.first_call_s)),
        Fact("steady step", format_seconds(cost.steady_s), f"eager {format_seconds(cost.eager_steady_s)}"),
        Fact("compiling", format_seconds(cost.compile_s)),
    ]
    if cost.steady_s is not None and cost.eager_steady_s is not None:
        facts += [*_paired(cost), Fact("has paid", _paid(cost))]
    if cost.dispatch_s is not None:
        facts.append(
            Fact(
                "overhead per step",
                format_seconds(cost.dispatch_s),
                "look-ups, guards and wrappers around compiled code",
            )
        )
    if cost.observing_s is not None:
        facts.append(Fact("of it recording", format_seconds(cost.observing_s)))
    if report.error is not None:
        facts.append(_error(report.error))
    phases = sorted(cost.phases_s.items(), key=lambda item: -item[1])
    total = sum(cost.phases_s.values()) or 1.0
    body = [(name, format_seconds(spent), percent(spent / total)) for name, spent in phases if spent > 0]
    how = "Each phase counts its own time, without the phases inside of it; together they are the time in which the program waited for the compiler."
    return Section(
        "compiling",
        "What compiling costs",
        facts,
        Table(("phase", "time", "share"), body) if body else None,
        how,
    )


def _paired(cost: CompileCost) -> list[Fact]:
    """The ratio that the headline tells, and of which measurement it is."""
    if cost.ratio is None:
        return []
    if cost.ci_low is None or cost.ci_high is None:
        return [Fact("paired with eager", "not known yet", "too few steps of each ran in turn")]
    told = (cost.ratio, cost.ci_low, cost.ci_high)
    text = (
        format_ratio(*told) if cost.outcome in {"faster", "slower"} else f"{cost.outcome}: {_its_time(*told)}"
    )
    return [Fact("paired with eager", text, "both in turn; the steady steps above are medians of each")]


def _paid(cost: CompileCost) -> str:
    if cost.break_even_steps is not None:
        return f"after {counted(cost.break_even_steps, 'step')}"
    return "not known yet" if cost.outcome in {"undecided", "faster"} else "never, as measured"


def _error(error: OutputError) -> Fact:
    if error.mismatch is not None:
        return Fact("against eager", error.mismatch)
    verdict = (
        "within tolerance" if error.within_tolerance else f"beyond the tolerance of {error.tolerance:.0e}"
    )
    return Fact(
        "against eager",
        f"largest difference {error.max_abs:.2g}, relative {error.max_rel:.2g}, cosine {error.cosine:.6f}",
        verdict,
    )
