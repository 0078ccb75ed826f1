"""Findings with their proof, where their evidence is shown, and what their rule is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pyrometer.errors import UsageError
from pyrometer.report.facts import findings as of_findings
from pyrometer.report.facts.finding_levers import tune_command
from pyrometer.report.facts.findings import Card
from pyrometer.rules.finding import Finding

SHOWN_ON: tuple[tuple[str, str], ...] = (
    ("/trace/breakdown_ns", "timeline"),
    ("/trace/call_tree", "flame"),
    ("/trace/roofline", "roofline"),
    ("/trace/idle", "idle"),
    ("/trace/launches", "idle"),
    ("/trace/sync_points", "idle"),
    ("/trace/memory", "memory"),
    ("/trace/collectives", "ranks"),
    ("/trace/steps", "timeline"),
    ("/trace/critical_path", "timeline"),
    ("/trace/", "operators"),
    ("/host/", "operators#host"),
    ("/dataflow/", "operators#dataflow"),
    ("/ceilings/", "timeline#ceilings"),
    ("/job/", "ranks"),
    ("/compiled/", "compile"),
    ("/memory/", "memory"),
    ("/snapshot/", "memory"),
    ("/loading/", "data"),
    ("/measurement/memory", "memory"),
    ("/measurement/", "quality"),
    ("/capture/", "quality"),
    ("/environment/", "environment"),
    ("/program/", "environment#program"),
    ("/numerics/", "quality#numerics"),
)
"""Beginnings of JSON pointers, and the page that shows what they point at, or a chapter of it; the first that fits holds."""

WORDS = {
    "timeline": "Show in the timeline",
    "flame": "Show in the flame graph",
    "operators": "Show among the operators",
    "roofline": "Show in the roofline",
    "idle": "Show in the idle time",
    "ranks": "Show among the ranks",
    "memory": "Show in the memory profile",
    "compile": "Show in the compile report",
    "data": "Show in the loader pipeline",
    "quality": "Show in the measurement",
    "environment": "Show in the environment",
    "environment#program": "Show in the program's set-up",
    "quality#numerics": "Show among the numbers",
    "operators#host": "Show among the host's lines",
    "operators#dataflow": "Show among what is computed in vain",
    "timeline#ceilings": "Show among the ceilings",
}
"""What a link to evidence says, by page or chapter."""

EXPLAINED = ("What it does", "Why it costs", "Fix safety")
"""Chapters of a rule's documentation that stand beside its findings."""


class Shown(NamedTuple):
    """A page, or a chapter of one, that shows the evidence of a finding."""

    page: str
    href: str
    words: str
    pointers: str  # those that it shows


class Explanation(NamedTuple):
    """What a rule says of itself: headings, each with its paragraphs."""

    code: str
    chapters: list[tuple[str, list[str]]]


class FindingView(NamedTuple):
    """A finding with everything that stands in its card."""

    card: Card
    anchor: str  # such as PYR301-data-waits
    proof: str
    shown: list[Shown]
    is_first: bool  # of its rule
    tune: str = ""  # the command that tries its lever, where the target can be tuned

    @property
    def explanation(self) -> Explanation | None:
        """What its rule says of itself, with the first of its findings only; the whole family is imported for it."""
        return explanation(self.card.finding.code) if self.is_first else None


def views(findings: Sequence[Finding], target: str = "") -> list[FindingView]:
    """Findings of a target in their order, ready to be laid out."""
    told: dict[str, int] = {}
    found = []
    for card in of_findings.cards(findings):
        finding = card.finding
        told[finding.code] = told.get(finding.code, 0) + 1
        is_first = told[finding.code] == 1
        found.append(
            FindingView(
                card=card,
                anchor=f"{finding.code}-{finding.name}" + ("" if is_first else f"-{told[finding.code]}"),
                proof=proof_text(finding),
                shown=shown_in(finding.links),
                is_first=is_first,
                tune=tune_command(target, finding),
            )
        )
    return found


def proof_text(finding: Finding) -> str:
    """How it is known, in a few words.

    >>> from pyrometer.advice import Advice, Gain
    >>> from pyrometer.place import Place
    >>> proof_text(Finding(
    ...     code="PYR101", name="item-in-hot-loop", severity="warning", message="", where=Place(),
    ...     confidence="high", advice=Advice(slug="a", title="", fix_class="semantic", gain=Gain(ratio_low=0.8, method="what-if: the step without the wait")),
    ... ))
    'what-if, confidence high'
    """
    source = finding.advice.gain or finding.cost
    method = re.split("[:;]", source.method)[0] if source is not None else ""
    return ", ".join(part for part in (method, f"confidence {finding.confidence}") if part)


def shown_in(links: Sequence[str]) -> list[Shown]:
    """The pages that show what JSON pointers point at, each once, in the order of the pointers.

    >>> [(one.page, one.pointers) for one in shown_in(["/loading/data_share", "/loading/stages", "/predict"])]
    [('data', '/loading/data_share, /loading/stages')]
    """
    pages: dict[str, list[str]] = {}
    for pointer in links:
        page = next((page for begin, page in SHOWN_ON if f"{pointer}/".startswith(begin)), None)
        if page is not None:
            pages.setdefault(page, []).append(pointer)
    return [
        Shown(place.partition("#")[0], _href(place), WORDS[place], ", ".join(pointers))
        for place, pointers in pages.items()
    ]


def _href(place: str) -> str:
    page, _, chapter = place.partition("#")
    return f"#{chapter}" if chapter else f"#/{page}"


def explanation(code: str) -> Explanation | None:
    """What the rule with this code says of itself; nothing where it is not known here, as when a plug-in is missing."""
    from pyrometer.rules.registry import find_rule

    try:
        rule = find_rule(code)
    except UsageError:
        return None
    chapters = [
        (heading, paragraphs(rule.section(heading))) for heading in EXPLAINED if rule.section(heading)
    ]
    return Explanation(rule.code, chapters) if chapters else None


def paragraphs(text: str) -> list[str]:
    r"""The paragraphs of a text, each on one line.

    >>> paragraphs("One that is\nbroken.\n\nAnother.")
    ['One that is broken.', 'Another.']
    """
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
