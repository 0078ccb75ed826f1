"""What a rule is, for people and programs: one entry feeds `pyrometer rule`, the reference in the docs and SARIF."""

from __future__ import annotations

from typing import Annotated

from pyrometer.advice import FIX_WORDS, FixClass
from pyrometer.document import Document
from pyrometer.record import Record, doc
from pyrometer.rules.finding import Severity
from pyrometer.rules.rule import HEADINGS, Rule, Stage


class LimitEntry(Record, frozen=True, kw_only=True):
    """A threshold of a rule."""

    key: Annotated[str, doc('as it is set in `[tool.pyrometer.rules.limits]`, such as "PYR301.min_share"')]
    value: float
    reason: str


class RuleEntry(Record, frozen=True, kw_only=True):
    """Everything that is said about one rule."""

    code: str
    name: str
    family: str
    summary: Annotated[str, doc("the fault, in a sentence")]
    stage: Stage
    since: Annotated[str, doc("version that the stage holds from")]
    successor: Annotated[str | None, doc("code of the rule that replaces a deprecated one")] = None
    severity: Severity
    fix_class: FixClass
    lever: str | None = None
    limits: list[LimitEntry] = []
    reads: Annotated[list[list[str]], doc("kinds of evidence; each list is enough for an answer")] = []
    sections: Annotated[dict[str, str], doc("documentation by heading, in Markdown")] = {}


class RulesDocument(Document, frozen=True, kw_only=True):
    """`pyrometer rule --json`."""

    rules: Annotated[list[RuleEntry], doc("by code")]


def entry(rule: Rule) -> RuleEntry:
    """A rule as a record."""
    reads = [["source"]] if rule.source_checks else []
    reads += [list(reading.needs) for reading in rule.readings]
    return RuleEntry(
        code=rule.code,
        name=rule.name,
        family=rule.family,
        summary=rule.summary,
        stage=rule.stage,
        since=rule.since,
        successor=rule.successor,
        severity=rule.severity,
        fix_class=rule.fix_class,
        lever=rule.lever,
        limits=[
            LimitEntry(key=f"{rule.code}.{limit.name}", value=limit.value, reason=limit.reason)
            for limit in rule.limits
        ],
        reads=reads,
        sections={heading: rule.section(heading) for heading in HEADINGS if rule.section(heading)},
    )


def markdown(rule_entry: RuleEntry, *, level: int = 1) -> str:
    """An entry as Markdown; its headings begin at `level`."""
    marks = "#" * level
    blocks = [f"{marks} {rule_entry.code} {rule_entry.name}", rule_entry.summary, _facts(rule_entry)]
    blocks += [f"{marks}# {heading}\n\n{text}" for heading, text in rule_entry.sections.items()]
    if rule_entry.limits:
        rows = [f'- `"{limit.key}" = {limit.value:g}`: {limit.reason}' for limit in rule_entry.limits]
        blocks.append(f"{marks}# Limits\n\n" + "\n".join(rows))
    return "\n\n".join(blocks)


def _facts(rule_entry: RuleEntry) -> str:
    stage = f"{rule_entry.stage} since {rule_entry.since}"
    if rule_entry.successor:
        stage += f", see {rule_entry.successor}"
    facts = [
        stage,
        f"severity {rule_entry.severity}",
        f"fix {rule_entry.fix_class}: {FIX_WORDS[rule_entry.fix_class]}",
    ]
    if rule_entry.lever:
        facts.append(f"lever `{rule_entry.lever}`")
    facts.append("reads " + " or ".join(" and ".join(kinds) for kinds in rule_entry.reads))
    return "; ".join(facts) + "."
