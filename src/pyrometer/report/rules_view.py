"""What `pyrometer rule` shows in the terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from pyrometer.report.glyphs import Portable
from pyrometer.rules.catalogue import RuleEntry, markdown


def rule_view(rule: RuleEntry) -> RenderableType:
    """One rule in full."""
    return Portable(Markdown(markdown(rule), code_theme="ansi_dark"))


def rules_view(entries: list[RuleEntry]) -> RenderableType:
    """A line per rule."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("code", "name", "fault", "fix"):
        table.add_column(heading, overflow="fold")
    for rule in entries:
        fault = rule.summary if rule.stage == "stable" else f"{rule.summary} ({rule.stage})"
        table.add_row(*(Text(cell) for cell in (rule.code, rule.name, fault, rule.fix_class)))
    return Portable(table)
