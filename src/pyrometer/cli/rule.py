"""`pyrometer rule`: what a rule means, why, an example, its fix."""

from __future__ import annotations

import click

from pyrometer.cli.printing import print_document, print_view
from pyrometer.garbage import uncollected


@click.command()
@click.argument("which", metavar="[CODE|NAME|PYR1]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(which: str | None, *, as_json: bool) -> None:
    """Explain a rule, or list those of a family (PYR1) or all of them."""
    with uncollected():
        from pyrometer.rules.catalogue import RulesDocument, entry
        from pyrometer.rules.registry import find_rule, rules, select

        many = which is None or (which.upper().startswith("PYR") and len(which) < len("PYR000"))
        chosen = (rules() if which is None else select([which])) if many else [find_rule(which or "")]
        entries = [entry(rule) for rule in chosen]
    if as_json:
        print_document(RulesDocument(rules=entries))
    else:
        from pyrometer.report.rules_view import rule_view, rules_view

        print_view(rules_view(entries) if many else rule_view(entries[0]))
