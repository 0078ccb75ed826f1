"""Documents as GitHub Markdown: for issues, pull requests and job summaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyrometer.report.chapters import chapter as shapes
from pyrometer.report.chapters.chapter import Chapter
from pyrometer.report.chapters.documents import tell_stored
from pyrometer.report.facts.findings import trial_text
from pyrometer.report.facts.layout import Fact, Table, percent, shortened, spans
from pyrometer.report.facts.memory import saving

MOST_ROWS = 40
"""Rows of a chapter's table; the document holds more."""


def render_document(kind: str, document: dict[str, Any]) -> str:
    """Render a stored document.

    Raises:
        InputError: the kind is unknown, or the document does not fit it.
    """
    told = tell_stored(kind, document)
    answer = told.answer
    parts = [f"## {escape(answer.headline)}", escape(answer.bound), escape(answer.subtitle)]
    parts += [f"- {escape(caution)}" for caution in answer.cautions]
    parts += [part for chapter in told.chapters for part in chapter_parts(chapter)]
    return "\n\n".join(part for part in parts if part) + "\n"


def chapter_parts(chapter: Chapter) -> list[str]:
    """A chapter as parts that stand apart."""
    depth = "##" if chapter.place == "part" else "###"
    says = f": {escape(chapter.says)}" if chapter.says else ""
    parts = [f"{depth} {escape(chapter.title)}{says}", *map(escape, chapter.lead)]
    return parts + [part for block in chapter.blocks for part in LAYOUTS[type(block)](block)]


def code_block(code: str) -> str:
    """Python source, fenced so that nothing in it can end the fence.

    >>> print(code_block("x = 1"))
    ```python
    x = 1
    ```
    """
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", code)), 3)
    return f"{fence}python\n{code}\n{fence}"


ENTITIES = {"<": "&lt;", ">": "&gt;", "@": "&#64;", "://": ":&#47;&#47;", "www.": "www&#46;"}
"""GitHub makes tags, mentions and links by itself of what looks like one."""


def escape(text: str, *, strip: bool = True) -> str:
    r"""Text that Markdown shows as it is: no markup, no HTML, no table cell break, no mention, on one line.

    >>> escape("a|b <img> `x` *y* @you")
    'a\\|b &lt;img&gt; \\`x\\` \\*y\\* &#64;you'
    """
    flat = re.sub(r"\s+", " ", text.strip() if strip else text)
    escaped = re.sub(r"([\\`*_{}\[\]|~#!])", r"\\\1", flat.replace("&", "&amp;"))
    # What would begin a list or a rule, were it the beginning of a line.
    escaped = re.sub(r"^(\d{0,9})([-+.)=])(?=[-=\s]|$)", r"\1\\\2", escaped)
    for markup, entity in ENTITIES.items():
        escaped = escaped.replace(markup, entity)
    return escaped


def table(content: Table) -> str:
    """A table; the first column is text, the others are figures."""
    lines = ["| " + " | ".join(escape(column) for column in content.columns) + " |"]
    sides = [
        ":---" if not index or index in content.words else "---:" for index in range(len(content.columns))
    ]
    lines.append("| " + " | ".join(sides) + " |")
    lines += ["| " + " | ".join(escape(cell) for cell in row) + " |" for row in content.rows]
    return "\n".join(lines)


def _facts(facts: Sequence[Fact]) -> str:
    return " · ".join(
        f"{escape(fact.label)} **{escape(fact.value)}**" + (f" ({escape(fact.note)})" if fact.note else "")
        for fact in facts
    )


def _rows(block: shapes.Rows) -> list[str]:
    return [table(block.table if block.is_whole else shortened(block.table, MOST_ROWS))]


def _shares(block: shapes.Shares) -> list[str]:
    rows = [(share.name, percent(share.share), share.said) for share in block.shares]
    whole = [] if block.in_all is None else [_facts([block.in_all])]
    return [table(Table(("part", "share", "size"), rows)), *whole]


def _caveats(block: shapes.Caveats) -> list[str]:
    lines = [f"- **{escape(caveat.message)}**: {_hint(caveat.advice.title)}" for caveat in block.caveats]
    return ["\n".join(lines) or escape(block.trust)]


def _findings(block: shapes.FindingCards) -> list[str]:
    parts = _caveats(shapes.Caveats([block.first])) if block.first is not None else []
    for view in block.views:
        card, finding = view.card, view.card.finding
        parts.append(f"#### {escape(card.title)}" + (f": {escape(card.gain)}" if card.gain else ""))
        place = f", at {escape(card.place)}" if card.place else ""
        parts.append(f"{escape(finding.message)}{place}. {escape(finding.advice.text)}")
        parts += [f"**{escape(tried)}**"] if (tried := trial_text(finding)) else []
        parts += [code_block(finding.advice.code)] if finding.advice.code else []
        parts += [f"Try it, with proof: `{view.tune}`"] if view.tune else []
        parts += [_facts(card.facts)] if card.facts else []
    return parts


def _advice(block: shapes.AdviceCards) -> list[str]:
    return [
        part
        for advice in block.advice
        for part in (
            f"#### {escape(advice.title + saving(advice))}",
            escape(advice.why),
            code_block(advice.code or ""),
            escape(advice.effect),
        )
    ]


def _breaks(block: shapes.BreakCards) -> list[str]:
    parts: list[str] = []
    for card in block.cards:
        parts += [f"#### {escape(card.place)}: {escape(card.title)}", escape(card.remark)]
        for rewrite in card.rewrites:
            parts.append(f"**{escape(rewrite.title)}**: {escape(rewrite.why)}")
            parts += [code_block(rewrite.rewrite)] if rewrite.rewrite else []
    return parts


def _heat(block: shapes.Heat) -> list[str]:
    rows = [
        (name, *(f"{cell.figure} {cell.note}".strip() for cell in cells)) for name, cells in block.heat.rows
    ]
    return [table(Table(("", *block.heat.across), rows))]


def _hint(text: str) -> str:
    return "".join(
        "`" + part.replace("|", "\\|") + "`" if code else escape(part, strip=False)
        for part, code in spans(text)
    )


LAYOUTS: Mapping[type, Callable[[Any], list[str]]] = MappingProxyType({
    shapes.AdviceCards: _advice,
    shapes.Alerts: lambda block: ["\n".join(f"- **{escape(line)}**" for line in block.lines)],
    shapes.Answers: lambda block: [table(block.table)],
    shapes.BreakCards: _breaks,
    shapes.Caveats: _caveats,
    shapes.Chart: lambda _: [],
    shapes.Code: lambda block: [code_block(block.text)],
    shapes.Facts: lambda block: [_facts(block.facts)],
    shapes.Figures: lambda block: [_facts(block.facts)],
    shapes.FindingCards: _findings,
    shapes.Heat: _heat,
    shapes.Machine: lambda block: [escape(block.line)],
    shapes.Rows: _rows,
    shapes.Shares: _shares,
    shapes.Text: lambda block: [escape(block.text)],
})  # fmt: skip
"""How each type of block is written; drawings have no place in text."""
