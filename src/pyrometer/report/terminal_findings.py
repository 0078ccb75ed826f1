"""What `pyrometer check` prints of findings, of the reading, and what `pyrometer audit` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from pyrometer.report import terminal_layout as layout
from pyrometer.report.documents import AuditDocument
from pyrometer.report.facts import audit as of_audit
from pyrometer.report.facts import findings as of_findings
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding

MOST_FINDINGS = 5
"""Findings that are printed in full; the page and the document hold all."""

MOST_LINES = 12
"""Findings that are printed in a line."""

STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold blue"}
MARKS = {"error": "!! ", "warning": "→ ", "info": "· "}
STATUSES = {"pass": "green", "fail": "bold red", "unknown": "yellow", "not applicable": "dim"}
QUIET = ("pass", "not applicable")
VERDICTS = {"fine": "green", "look": "yellow", "bad": "bold red", "unknown": "dim"}


def finding_rows(findings: Sequence[Finding]) -> layout.Rows:
    """What is worth acting on in full; remarks, and what counts the same cost again, in a line each."""
    cards = of_findings.cards(findings)
    rows: layout.Rows = [("Findings", Text(of_findings.headline(findings), style="bold"))]
    full = [card for card in cards if of_findings.stands_alone(card.finding)][:MOST_FINDINGS]
    rows += [("", _card(card)) for card in full]
    rest = [card for card in cards if card not in full]
    if rest:
        rows.append(("", _lines(rest)))
    return rows


def _lines(cards: Sequence[of_findings.Card]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for card in cards[:MOST_LINES]:
        finding = card.finding
        mark = Text(MARKS[finding.severity], style=STYLES[finding.severity])
        same = f"as {finding.overlaps[0]}" if finding.overlaps else card.gain
        grid.add_row(Text.assemble(mark, card.title), Text(card.place, style="dim"), Text(same, style="dim"))
    if len(cards) > MOST_LINES:
        grid.add_row(Text(f"  and {len(cards) - MOST_LINES} more in the report", style="dim"))
    return grid


def reading_rows(reading: Sequence[ReadingStep]) -> layout.Rows:
    """The questions of the reading, in order."""
    if not reading:
        return []
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(max_width=40)
    grid.add_column(ratio=1)
    for step in reading:
        codes = f" [{' '.join(step.codes)}]" if step.codes else ""
        grid.add_row(
            Text(step.question, style=VERDICTS[step.verdict]), Text.assemble(step.answer, (codes, "dim"))
        )
    return [("Reading", grid)]


def _card(card: of_findings.Card) -> RenderableType:
    finding = card.finding
    head = Text.assemble(
        (MARKS[finding.severity], STYLES[finding.severity]),
        (card.title, "bold"),
        (f"  {card.gain}", "green") if card.gain else "",
    )
    parts: list[RenderableType] = [head, Padding(Text(finding.message), (0, 0, 0, 2))]
    if card.place:
        parts.append(Padding(Text(f"at {card.place}", style="cyan"), (0, 0, 0, 2)))
    parts.append(Padding(Text(finding.advice.text), (0, 0, 0, 2)))
    if finding.advice.rewrite:
        parts.append(Padding(Text(finding.advice.rewrite, style="green"), (0, 0, 0, 4)))
    return Group(*parts)


def audit_view(document: AuditDocument) -> RenderableType:
    """The score, then the items group by group."""
    rows: layout.Rows = []
    for group in document.audit.groups:
        rows.append(("Score", Text(of_audit.title(group), style="bold")))
        grid = Grid.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        for item in sorted(group.items, key=lambda one: of_audit.ORDER.index(one.status)):
            told = [
                Text(item.title, style="dim" if item.status in QUIET else ""),
                Text(item.reason, style="dim"),
            ]
            if item.advice is not None:
                told.append(Text(item.advice, style="green"))
            grid.add_row(
                Text(item.code, style="dim"), Text(item.status, style=STATUSES[item.status]), Group(*told)
            )
        rows.append(("", grid))
    rows += [("Note", Text(note)) for note in document.notes]
    return layout.page(
        *layout.head(of_audit.headline(document.audit), of_audit.subtitle(document.audit)), rows
    )
