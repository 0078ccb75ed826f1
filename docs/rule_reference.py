"""The pages about rules, from the rules themselves: one per family, and the list of all; called by `make docs`."""  # noqa: INP001 - a script

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyrometer.rules.audit.audit import GROUPS
from pyrometer.rules.catalogue import RuleEntry, entry, markdown
from pyrometer.rules.registry import rules
from pyrometer.rules.rule import FAMILIES

NOTE = "<!-- Generated from the code by `make docs`. -->"
TITLES = {
    "measuring": "Measuring and reading wrongly",
    "host": "The host, and waiting for devices",
    "memory": "Memory",
    "data": "Data",
    "compilation": "Compilation",
    "kernels": "Kernels, precision, layout",
    "distributed": "Several ranks",
    "numerics": "Numbers that go wrong",
    "production": "Production",
}
HEAD = """# Rules

{note}

A rule reads evidence (source text, a measurement, a trace, a compile report, a memory profile, a loader profile, the program's set-up) and
says what it means. `pyrometer check` asks those whose evidence it has, `pyrometer lint` those that read source text, `pyrometer rule CODE`
shows one in the terminal. How findings are ranked, suppressed and configured: [findings](../findings.md).

{count} rules. `fix` says what the advice may change: `exact` nothing, `tolerance` digits, `semantic` what is computed."""
LIMITS_HEAD = """## Limits

Every threshold of every rule, with its reason. Set one in `pyproject.toml`:

```toml
[tool.pyrometer.rules.limits]
"{key}" = {value:g}
```"""
AUDIT_HEAD = """## The checklist of the audit

`pyrometer audit` answers these. An item fails when one of its rules finds something, and passes only on a figure that proves it."""


def pages(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every page with its text."""
    entries = [entry(rule) for rule in rules()]
    yield folder / "README.md", index_page(entries)
    for family in FAMILIES.values():
        own = [rule_entry for rule_entry in entries if rule_entry.family == family]
        if own:
            yield folder / f"{family}.md", family_page(family, own)


def index_page(entries: list[RuleEntry]) -> str:
    """All rules in a table per family, all limits, and the checklist."""
    blocks = [HEAD.format(note=NOTE, count=len(entries))]
    for family in FAMILIES.values():
        own = [rule_entry for rule_entry in entries if rule_entry.family == family]
        if own:
            rows = [
                f"| [{rule_entry.code}]({family}.md#{anchor(rule_entry)}) | {rule_entry.name} | {cell(rule_entry.summary)} | {rule_entry.fix_class} | {reads(rule_entry)} |"
                for rule_entry in own
            ]
            blocks += [
                f"## {TITLES[family]}",
                "\n".join(["| code | name | fault | fix | reads |", "|:---|:---|:---|:---|:---|", *rows]),
            ]
    limits = [limit for rule_entry in entries for limit in rule_entry.limits]
    rows = [f"| `{limit.key}` | {limit.value:g} | {cell(limit.reason)} |" for limit in limits]
    blocks += [
        LIMITS_HEAD.format(key=limits[0].key, value=limits[0].value),
        "\n".join(["| limit | value | reason |", "|:---|---:|:---|", *rows]),
        AUDIT_HEAD,
    ]
    for name, items in GROUPS.items():
        rows = [f"| {item.code} | {item.title} | {' '.join(item.rules)} |" for item in items]
        blocks += [
            f"### {name[:1].upper()}{name[1:]}",
            "\n".join(["| item | what must hold | rules |", "|:---|:---|:---|", *rows]),
        ]
    return "\n\n".join(blocks) + "\n"


def family_page(family: str, entries: list[RuleEntry]) -> str:
    """The rules of one family in full."""
    head = f"# {TITLES[family]}\n\n{NOTE}\n\n[All rules](README.md)"
    return "\n\n".join([head, *(markdown(rule_entry, level=2) for rule_entry in entries)]) + "\n"


def anchor(rule_entry: RuleEntry) -> str:
    """Where a rule stands on its family's page, as GitHub names headings."""
    return f"{rule_entry.code.lower()}-{rule_entry.name}"


def reads(rule_entry: RuleEntry) -> str:
    """The kinds of evidence, any of which is enough."""
    return ", ".join(dict.fromkeys(" + ".join(kinds) for kinds in rule_entry.reads))


def cell(text: str) -> str:
    """A text that does not end its table cell."""
    return text.replace("|", "\\|").replace("\n", " ")
