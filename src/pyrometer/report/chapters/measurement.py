"""Chapters about how long a step takes: a measurement, a verdict, cold starts, a long run."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement, PhaseTime
from pyrometer.bench.record import ColdStarts, Soak
from pyrometer.memory.profile import MemoryProfile
from pyrometer.quantity import format_seconds
from pyrometer.report.chapters.chapter import (
    Answer,
    Block,
    Caveats,
    Chapter,
    Chart,
    Facts,
    Figures,
    Rows,
    Shares,
    Text,
)
from pyrometer.report.charts.histogram import latency_scale
from pyrometer.report.charts.shares import Share
from pyrometer.report.charts.strip import warmup_scale
from pyrometer.report.facts import cold as of_cold
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts import memory_peaks
from pyrometer.report.facts import soak as of_soak
from pyrometer.report.facts import verdict as of_verdict
from pyrometer.report.facts.layout import Fact, Table
from pyrometer.text import with_capital

SPLIT_HOW = "The bar is {}; each part is as wide as its share of it. {}"
SPLIT_CHANGE = "Another batch size, input shape or machine."


def answer(m: Measurement, bound: str = "") -> Answer:
    """The headline of a measurement; of one that failed, where."""
    failed = m.failure is not None
    return Answer(
        of_measurement.headline(m),
        of_measurement.subtitle(m),
        leading=1 if failed else 2,
        tone="failed" if failed else "",
        bound=bound,
    )


def split(m: Measurement) -> list[Chapter]:
    """The phases of a step as parts of its median."""
    if not m.phases:
        return []
    shares = [
        Share(phase.name, phase.share, format_seconds(phase.share * m.median_s), slot)
        for slot, phase in zip(of_measurement.phase_slots(m.phases), m.phases, strict=True)
    ]
    whole = Fact("in all", format_seconds(m.median_s), "median of the measured steps")
    how = SPLIT_HOW.format("one step", "Work that overlaps counts only where the step waits for it.")
    return [
        Chapter("split", "Where the step goes", [Shares(shares, "a step", in_all=whole)], how=how, change=SPLIT_CHANGE, label="Step", place="story")
    ]  # fmt: skip


def quality(m: Measurement) -> Chapter:
    """Whether the figures can be trusted."""
    caveats = Caveats(
        of_measurement.other_caveats(m),
        of_measurement.trust(m),
        of_measurement.is_sound(m),
        m.failure is not None,
        of_measurement.conditions_facts(m.conditions) if m.conditions is not None else (),
    )
    return _quality(caveats, "overview quality")


def _quality(caveats: Caveats, pages: str) -> Chapter:
    return Chapter("quality", "Can it be trusted?", [caveats], pages, place="card")


def figures(m: Measurement, profile: MemoryProfile | None = None) -> Chapter:
    """What a reader looks for first."""
    facts = memory_peaks.headline_figure(of_measurement.top_figures(m), profile)
    return Chapter("figures", "Figures", [Figures(facts)], place="quiet")


def chapters(m: Measurement, shares: Table | None = None) -> list[Chapter]:
    """Latency, the course from cold to steady, phases and memory.

    Args:
        m: the measurement.
        shares: what getting data takes in each kind of steps that were run.
    """
    told = [_latency(m), _steady(m)]
    told += [_phases(m.phases, shares)] if m.phases else []
    return [*told, *_memory(m)]


def _latency(m: Measurement) -> Chapter:
    due = of_measurement.deadline(m)
    how = "Each bar counts the samples of about that duration. The solid line is the median and the band behind it its interval; dashed lines mark the slow tail."
    how += " Bars right of the deadline missed it." if due is not None else ""
    if m.samples_s and latency_scale(m).log:
        how += " The axis is logarithmic: equal distances are equal ratios."
    if m.steps_per_sample > 1:
        how += f" A sample is the mean of {m.steps_per_sample} steps, so single slow steps show up weakened."
    change = (
        "A second hump means two kinds of steps (shapes, cache states, another program), which a median does not describe. If the "
        "interval is wider than the difference that matters to you, measure longer."
    )
    spread = of_measurement.spread(m)
    blocks: list[Block] = [
        Chart("histogram", m, "How long a step takes", how, change),
        Rows(of_measurement.latency_table(m), "Quantiles of the step time", is_whole=True),
        Facts(spread if due is None else [due, *spread]),
    ]
    return Chapter("latency", "Latency", blocks, "quality")


def _steady(m: Measurement) -> Chapter:
    marks = "Squares are warm-up steps, which no figure above includes; dots" if m.warmup_s else "Dots"
    log = "; that of the warm-up is logarithmic" if m.warmup_s and warmup_scale(m).log else ""
    how = f"{marks} are samples, the line is their median. The axes differ and do not start at zero{log}. Triangles are samples beyond the axis."
    change = "A slope or a jump among the dots means that the program, or the machine, was not in one state: the median would then depend on how long you look."
    blocks: list[Block] = [
        Chart("strips", m, "Step time in the order it was measured", how, change),
        Facts([*of_measurement.cold(m), *of_measurement.work(m)]),
    ]
    return Chapter("steady", "Cold and steady", blocks, "quality", label="Cold")


def _phases(phases: Sequence[PhaseTime], shares: Table | None) -> Chapter:
    blocks: list[Block] = [Rows(of_measurement.phase_table(phases), "Phases of a step", is_whole=True)]
    if shares is not None:
        blocks.append(Rows(shares, "Getting data, in each kind of steps that were run"))
        blocks.append(
            Text(
                "The first share is the one that is told everywhere. The steps were run one kind after the other, and the profiler "
                "lengthens Python, such as samples that are made in it, more than operators."
            )
        )
    how = (
        "Means are those of the steps whose phases were timed; they add up to the mean of these steps, which may differ from the median "
        "above. Work that overlaps, such as loading in other processes, counts only where the step waits for it."
    )
    change = "Another batch size, input shape or number of loader workers moves the shares; compare like with like."
    return Chapter("phases", "Phases", blocks, "quality", how=how, change=change)


def _memory(m: Measurement) -> list[Chapter]:
    if m.memory is None:
        return []
    source = m.memory.source
    how = (
        f"{with_capital(source)}, on {m.memory.device}. Dashed lines: before the first step, and the peak. "
        "The axis does not start at zero."
    )
    change = (
        "A line that still rises at the end may level off, or may be a leak: a longer run tells them apart."
    )
    blocks: list[Block] = [
        Chart("memory-line", m.memory, "Memory after each step", how, change),
        Facts(of_measurement.memory_facts(m.memory)),
    ]
    return [Chapter("memory", "Memory", blocks, "memory")]


def verdict_answer(v: Verdict) -> Answer:
    """The sentence of a verdict."""
    return Answer(of_verdict.headline(v), of_verdict.subtitle(v), tone=v.outcome)


VERDICT_CHANGES = {
    "same": "A narrower margin: the interval would have to fit inside it.",
    "undecided": "A narrower interval: more blocks, or a quieter machine.",
}
"""What would change a verdict; one that found a difference stands until its interval touches it."""


def verdict(v: Verdict, machine: Sequence[Chapter]) -> list[Chapter]:
    """The ratio, the machine on which it holds, what it rests on, and the statistics beside it."""
    pages, dot = "overview comparison", "block" if v.num_processes is None else "fresh process"
    how = (
        f"The diamond is the ratio, its bar the interval; each dot is one {dot}, in which both sides ran. The shaded band is the margin: "
        "an interval inside it is called the same. Left of 1 the candidate is faster."
    )
    change = VERDICT_CHANGES.get(
        v.outcome,
        "An interval that touches 1, or an estimate nearer to 1 than the smallest effect that counts. It holds for this machine and these inputs.",
    )
    drawn = Chart("forest", v, "Ratio of step times, candidate over baseline", how, change)
    figures = Figures(of_verdict.top_figures(v))
    ratios: list[Block] = [Rows(of_verdict.ratio_table(v), "Ratios with their intervals", is_whole=True)]
    if v.reference is not None:
        folded = "Textbook statistics, for readers who expect them; they did not make the verdict"
        ratios.append(Rows(of_verdict.reference_table(v.reference), "Textbook statistics", folded))
    return [
        Chapter("ratio", f"{v.candidate} against {v.baseline}", [drawn, figures], pages, place="quiet"),
        *machine,
        _quality(Caveats(v.caveats, of_verdict.trust(v), of_verdict.is_sound(v)), pages),
        Chapter("ratios", "Ratios", ratios, pages),
    ]


def cold_starts(starts: ColdStarts) -> Chapter:
    """How long the first result takes."""
    return Chapter(
        "starts",
        "Cold starts",
        [Rows(of_cold.stage_table(starts), "Stages of a cold start", is_whole=True)],
        says=of_cold.headline(starts),
        lead=[of_cold.subtitle(starts)],
    )


def soak(found: Soak) -> Chapter:
    """Whether a long run stayed as it was."""
    how = "One dot per window, after the warm-up. The slope and its interval are in the table; they allow for windows that are alike because they are neighbours."
    change = "A longer run. One run cannot tell the program's drift from the machine's: watch its temperature and load, and repeat it."
    blocks: list[Block] = [
        Chart("windows", found, "Median step by window", how, change),
        Rows(of_soak.drift_table(found), "Drift", is_whole=True),
        Caveats(found.caveats),
    ]
    return Chapter("soak", "Long run", blocks, says=of_soak.headline(found), lead=[of_soak.subtitle(found)])
