"""What is said about a rule, in one place for terminal, pages and SARIF."""

from __future__ import annotations

import msgspec

from pyrometer.record import to_dict
from pyrometer.rules.catalogue import RuleEntry, entry, markdown
from pyrometer.rules.registry import find_rule, rules
from pyrometer.rules.rule import HEADINGS


def test_every_rule_has_a_whole_entry() -> None:
    """PYR09x speak of comments and of unreadable files, which `pyrometer lint` itself looks at."""
    for rule in rules():
        rule_entry = entry(rule)
        assert list(rule_entry.sections) == list(HEADINGS)
        assert rule_entry.reads or rule.code.startswith("PYR09"), (
            f"{rule.code} reads nothing and could never fire"
        )
        assert rule_entry.summary.endswith(".")
        assert len(rule_entry.summary) < 120


def test_an_entry_survives_json() -> None:
    for rule in rules():
        rule_entry = entry(rule)
        assert msgspec.json.decode(msgspec.json.encode(to_dict(rule_entry)), type=RuleEntry) == rule_entry


def test_limits_are_named_as_they_are_set() -> None:
    rule_entry = entry(find_rule("PYR301"))
    assert all(limit.key.startswith("PYR301.") and limit.reason for limit in rule_entry.limits)


def test_markdown_nests_below_the_level_that_is_asked_for() -> None:
    text = markdown(entry(find_rule("PYR101")), level=3)
    headings = [line for line in text.splitlines() if line.startswith("#") and "<-" not in line]
    assert headings[0] == "### PYR101 item-in-hot-loop"
    assert [line for line in headings if line.startswith("#### ")][: len(HEADINGS)] == [
        f"#### {heading}" for heading in HEADINGS
    ]
    assert "lever `remove_sync`" in text
    assert '"PYR101.min_share" = 0.01' in text
