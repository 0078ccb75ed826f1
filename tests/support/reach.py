"""Which rules a verb can reach: those that can answer from what it observes, or from the source of its target.

`python tests/support/reach.py` prints how many.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyrometer.evidence.kinds import SEEN_BY
from pyrometer.rules.rule import Rule

VERBS = (*SEEN_BY, "lint")
"""Verbs that ask rules; `lint` reads source text alone, all others read that of their target as well."""


def reaches(verb: str, rule: Rule) -> bool:
    """Whether a verb observes all that one reading of a rule needs, or the rule finds its fault in source text.

    A rule without any check is about linting itself, such as a file that cannot be read, and is told by `lint`.
    """
    if rule.source_checks:
        return True
    if verb == "lint":
        return not rule.readings
    kinds = {"source", *SEEN_BY[verb]}
    return any(kinds.issuperset(reading.needs) for reading in rule.readings)


def reach_table(rules: Iterable[Rule]) -> dict[str, list[str]]:
    """The codes of the rules that each verb reaches."""
    known = list(rules)
    return {verb: [rule.code for rule in known if reaches(verb, rule)] for verb in VERBS}


if __name__ == "__main__":
    from pyrometer.rules.registry import rules

    for verb, codes in reach_table(rules()).items():
        print(f"{verb:8} {len(codes):4} of {len(rules())}")
