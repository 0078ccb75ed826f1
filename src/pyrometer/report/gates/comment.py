"""The comment of a pull request, and the job's summary: short, and the same each time but for its figures."""

from __future__ import annotations

from pyrometer.guard.gate import GuardReport
from pyrometer.report.facts import guard as of_guard
from pyrometer.report.facts.layout import Table

MARKER = "<!-- pyrometer guard -->"
"""By which the one comment of a pull request is found again."""

MOST_ROWS = 40


def comment(report: GuardReport) -> str:
    """The report in Markdown: what changed, why, and every gate folded away."""
    telling = of_guard.worth_telling(report)
    lines = [
        MARKER,
        f"### Pyrometer: {_escaped(of_guard.headline(report))}",
        "",
        of_guard.subtitle(report),
        "",
    ]
    if telling:
        lines += [*_table(of_guard.gates_table(telling)), ""]
    why = of_guard.why_lines(telling)
    if why:
        lines += ["**Why**", "", *(f"- {_escaped(line)}" for line in why), ""]
    said = of_guard.also_lines(report)
    if said:
        lines += ["**Also**", "", *(f"- {_escaped(line)}" for line in said), ""]
    lines += [of_guard.self_line(report.self_check), ""]
    if report.gates:
        summary = f"<details><summary>Every gate ({len(report.gates)})</summary>"
        lines += [summary, "", *_table(of_guard.gates_table(report.gates)), "", "</details>", ""]
    return "\n".join(lines)


def has_news(report: GuardReport) -> bool:
    """Whether a pull request needs a comment, or one that it has should say that all is well again."""
    return bool(of_guard.worth_telling(report) or report.missed or not report.trusted)


def _table(table: Table) -> list[str]:
    def row(cells: tuple[str, ...]) -> str:
        return f"| {' | '.join(map(_escaped, cells))} |"

    rows = [row(cells) for cells in table.rows[:MOST_ROWS]]
    more = len(table.rows) - MOST_ROWS
    if more > 0:
        rows.append(row((f"and {more} more", *("",) * (len(table.columns) - 1))))
    return [row(table.columns), row(("---",) * len(table.columns)), *rows]


def _escaped(text: str) -> str:
    """Text of the user's program as text: no markup, no mention, no cell of its own."""
    plain = text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "&#64;")):
        plain = plain.replace(sign, entity)
    for sign in "`*_[]":
        plain = plain.replace(sign, f"\\{sign}")
    return plain
