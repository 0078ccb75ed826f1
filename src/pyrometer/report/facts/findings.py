"""Findings and the reading of a profile as they are told: cards, one-line summaries, tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyrometer.advice import FIX_WORDS
from pyrometer.place import Place
from pyrometer.quantity import counted, format_bytes, format_seconds, significant
from pyrometer.report.facts.layout import Fact, Section, Table, percent
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding, Suppressed
from pyrometer.trace.naming.shapes import shape_words

MARKS = {"fine": "fine", "look": "look here", "bad": "not sound", "unknown": "not seen"}
SHOWN_EVIDENCE = 8
QUANTITIES: tuple[tuple[str, Callable[[float], str]], ...] = (
    (r"gb_per_s$", lambda value: f"{significant(value)} GB/s"),
    (r"(^|_)ns($|_per_)", lambda value: format_seconds(value * 1e-9)),
    (r"(^|_)(s|seconds)($|_per_)", format_seconds),
    (r"(^|_)bytes($|_per_)", format_bytes),
    (r"(^|_)(share|fraction|bubble)($|_)|^(occupancy|worker_busy|half_width|persistence)$", percent),
)
"""What in a name tells the unit of its figure, and how that is written; the first that fits holds."""

LABELS = {
    "data_share": "getting batches, of a step",
    "wait_s": "getting batches, per step",
    "half_width": "the median is known to ±",
    "share_of_roof": "of the roof",
    "worker_busy": "workers busy",
    "occupancy": "queue full",
}
"""Figures whose name in the record does not tell enough."""

VALUES = {
    "starved-steady": "workers at their limit",
    "bursty": "batches come unevenly",
    "handover-bound": "the handover holds it back",
    "slow-start": "workers start slowly",
    "serial": "loading and computing take turns",
    "no-loader": "no DataLoader",
}
"""Words for what records tell by a short name."""

NEVER_FASTER = 0.995
"""A predicted ratio above this is told as no gain."""

NEXT_TO_NOTHING = 0.05
"""A best ratio below which what is left of the step is smaller than what is known of it: no larger factor is named."""

LEAST_LEFT = 0.01
"""The same where the worst ratio is below that, too."""


class Card(NamedTuple):
    """One finding as text."""

    finding: Finding
    anchor: str  # for links to it
    title: str
    place: str
    gain: str  # what the advice should bring; empty where nothing is predicted
    facts: list[Fact]
    remarks: list[str]


def cards(findings: Sequence[Finding]) -> list[Card]:
    """Findings ready to be laid out: in their order, what is another view of one above and remarks behind the others."""
    ordered = sorted(findings, key=lambda finding: not stands_alone(finding))
    return [
        Card(
            finding=finding,
            anchor=f"finding-{number}",
            title=f"{finding.code} {finding.name}",
            place=place_text(finding.where),
            gain=gain_text(finding),
            facts=_facts(finding),
            remarks=_remarks(finding),
        )
        for number, finding in enumerate(ordered, 1)
    ]


def stands_alone(finding: Finding) -> bool:
    """Whether a finding is worth acting on for itself: no remark, and not another view of one above.

    >>> from pyrometer.advice import Advice
    >>> where = Place(file="train.py", line=3)
    >>> remark = Finding(
    ...     code="PYR101", name="item-in-hot-loop", severity="info", message="", where=where,
    ...     confidence="low", advice=Advice(slug="a", title="", fix_class="semantic"),
    ... )
    >>> stands_alone(remark)
    False
    """
    return finding.severity != "info" and not finding.overlaps


def headline(findings: Sequence[Finding]) -> str:
    """How many there are, and the first of them.

    >>> headline([])
    'no rule found a fault'
    """
    if not findings:
        return "no rule found a fault"
    serious = sum(stands_alone(finding) for finding in findings)
    rest = sum(finding.severity == "info" for finding in findings)
    text = counted(serious, "finding") if serious else "no serious finding"
    return text + (f" and {counted(rest, 'remark')}" if rest else "")


def gain_text(finding: Finding) -> str:
    """What the advice should bring, in words; empty where nothing is predicted."""
    gain = finding.advice.gain
    if gain is None:
        return ""
    said = []
    if gain.ratio_low is not None and gain.ratio_low < NEVER_FASTER:
        high = gain.ratio_high if gain.ratio_high is not None else 1.0
        said.append(_faster(gain.ratio_low, high))
    if gain.saves_bytes:
        said.append(f"saves {format_bytes(gain.saves_bytes)}")
    return ", ".join(said)


def trial_text(finding: Finding) -> str:
    """What came of the rewrite when it was tried, beside what was predicted; empty where it was not."""
    trial = finding.trial
    if trial is None:
        return ""
    promised = trial.predicted
    low = promised.ratio_low if promised is not None else None
    if promised is None or low is None:
        return f"tried: {trial.said}"
    high = promised.ratio_high if promised.ratio_high is not None else 1.0
    predicted = _faster(low, high)
    return f"tried: {trial.said} (predicted: {predicted})"


def _faster(low: float, high: float) -> str:
    """A range of ratios, new over old time; a step that may come to nothing has no best case to name.

    >>> _faster(0.5, 0.8), _faster(0.9351, 0.9352), _faster(0.5, 1.0)
    ('1.25–2.00× faster', '1.07× faster', 'up to 2.00× faster')
    >>> _faster(0.001, 0.4), _faster(0.001, 0.04), _faster(0.001, 1.0)
    ('2.50× to over 20× faster', '25.0–100× faster', 'up to 20.0× faster')
    """
    if low < NEXT_TO_NOTHING < high < NEVER_FASTER:
        return f"{significant(1 / high)}× to over {1 / NEXT_TO_NOTHING:.0f}× faster"
    low = min(max(low, NEXT_TO_NOTHING if high >= NEVER_FASTER else LEAST_LEFT), high)
    least, most = significant(1 / high), significant(1 / low)
    if high >= NEVER_FASTER:
        return f"up to {most}× faster"
    return f"{most}× faster" if least == most else f"{least}–{most}× faster"


def cost_text(finding: Finding) -> str:
    """What it costs now, in words; empty where that is not known."""
    cost = finding.cost
    if cost is None:
        return ""
    said = []
    if cost.seconds_per_step is not None:
        said.append(f"{format_seconds(cost.seconds_per_step)} per step")
    if cost.share is not None:
        said.append(f"{percent(cost.share)} of it" if said else f"{percent(cost.share)} of the step")
    if cost.bytes is not None:
        said.append(format_bytes(cost.bytes))
    return ", ".join(said)


def place_text(where: Place) -> str:
    """A place in one line; empty where nothing is known.

    >>> place_text(Place(file="train.py", line=12, function="step", op="aten::item"))
    'train.py:12 in step, aten::item'
    """
    text = ""
    if where.file is not None:
        text = where.file if where.line is None else f"{where.file}:{where.line}"
        text += f" in {where.function}" if where.function else ""
    parts = [text, f"module {where.module}" if where.module else "", where.op or ""]
    parts.append(f"rank {where.rank}" if where.rank is not None else "")
    return ", ".join(part for part in parts if part)


def reading_section(reading: Sequence[ReadingStep]) -> Section:
    """The ordered questions with their answers."""
    rows = [(step.question, MARKS[step.verdict], step.answer, " ".join(step.codes)) for step in reading]
    return Section(
        "reading",
        "Reading the profile",
        [],
        Table(("question", "", "answer", "findings"), rows, frozenset({1, 2, 3})),
        how="The questions stand in the order in which they are best asked: an answer decides what the next ones mean. "
        "What is not sound makes everything below it uncertain.",
        change="More steps, fewer reservations in the measurement, and a program traced with stacks and shapes.",
    )


def suppressed_text(suppressed: Sequence[Suppressed]) -> str:
    """How many findings were not shown, and why."""
    if not suppressed:
        return ""
    text = "; ".join(
        f"{one.code} {place_text(one.where)}: {one.reason or 'no reason given'}" for one in suppressed[:3]
    )
    more = f"; and {len(suppressed) - 3} more" if len(suppressed) > 3 else ""
    return f"{counted(len(suppressed), 'finding')} left out on request: {text}{more}"


def _facts(finding: Finding) -> list[Fact]:
    facts = [Fact(label, told) for label, told in (("costs", cost_text(finding)),) if told]
    for name, value in list(finding.evidence.items())[:SHOWN_EVIDENCE]:
        if isinstance(value, (str, bool, int, float)):
            facts.append(_evidence(name, value))
    return facts


def _evidence(name: str, value: float | str | bool) -> Fact:
    """A figure of the evidence; its unit stands in its name."""
    label = LABELS.get(name) or re.sub(r"\bnum ", "", name.replace("_", " "))
    if isinstance(value, bool):
        return Fact(label, "yes" if value else "no")
    if isinstance(value, str):
        return Fact(label, shape_words(value) if name.endswith("shapes") else VALUES.get(value, value))
    for mark, shown in QUANTITIES:
        if re.search(mark, name):
            return Fact(_without_unit(label), shown(value))
    return Fact(label, f"{value:,}" if isinstance(value, int) else significant(value))


def _without_unit(label: str) -> str:
    """A name whose figure carries its unit.

    >>> _without_unit("first call s"), _without_unit("seconds per call"), _without_unit("stalled ns per step")
    ('first call', 'per call', 'stalled per step')
    """
    return re.sub(r"( (s|ns|bytes|gb per s)$|(^| )(s|ns|seconds|bytes)(?= per ))", "", label).strip()


def _remarks(finding: Finding) -> list[str]:
    tried = trial_text(finding)
    remarks = [tried] if tried else []
    remarks += [f"with the fix, {FIX_WORDS[finding.advice.fix_class]}", f"confidence {finding.confidence}"]
    if finding.advice.lever:
        remarks.append(f"lever {finding.advice.lever}")
    if finding.cost is not None:
        remarks.append(f"cost: {finding.cost.method}")
    if gain_text(finding) and finding.advice.gain is not None:
        remarks.append(f"gain: {finding.advice.gain.method}")
    if finding.overlaps:
        remarks.append(f"counts the same cost as {', '.join(finding.overlaps)}")
    return remarks
