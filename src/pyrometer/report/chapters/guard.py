"""What `pyrometer guard check` tells."""

from __future__ import annotations

from pyrometer.guard.gate import GuardReport
from pyrometer.report.chapters.chapter import Alerts, Answer, Chapter, Rows, Text, Told
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.facts import guard as of_guard


def tell(report: GuardReport) -> Told:
    """Whether the head is worse than its base, by how much, and why."""
    answer = Answer(of_guard.headline(report), of_guard.subtitle(report), verdict=of_guard.verdict(report))
    how = (
        "Each ratio is head over base, from processes that ran in turns on this machine, with its interval. A time regresses where it is "
        "proved slower by more than 2 % and not proved to stay within its limit; what is counted, where it is more."
    )
    change = "Limits of your own, in [tool.pyrometer.guard.limits]; more pairs, where a gate is undecided."
    telling = of_guard.worth_telling(report)
    chapters = []
    if telling:
        table = Rows(of_guard.gates_table(telling), "What changed", is_whole=True)
        chapters.append(Chapter("changed", "What changed", [table], how=how, change=change, label="Changed"))
    why = of_guard.why_lines(telling)
    if why:
        chapters.append(Chapter("why", "Why", [Text(line) for line in why], label="Why"))
    said = of_guard.also_lines(report)
    if said:
        chapters.append(Chapter("missed", "What else there is to know", [Alerts(said)], label="Also"))
    trust = Text(of_guard.self_line(report.self_check))
    chapters.append(Chapter("quality", "Can it be trusted?", [trust], place="card"))
    if report.gates:
        every = Rows(of_guard.gates_table(report.gates), "Every gate", f"Every gate ({len(report.gates)})")
        chapters.append(Chapter("gates", "Every gate", [every], label="Gates"))
    chapters += machine(report.environment)
    return Told(answer, chapters + provenance(report, report.environment))
