"""From what a verb observed to what it means, in the same way for every verb."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from pyrometer.evidence.kinds import SEEN_BY

if TYPE_CHECKING:
    from pyrometer.evidence.evidence import Evidence
    from pyrometer.rules.diagnosis import Diagnosis
    from pyrometer.rules.rule import Rule
    from pyrometer.workload.target import Target

ABOUT: Mapping[str, tuple[str, frozenset[str]]] = MappingProxyType(
    {
        "compile": ("compilation", frozenset({"compiled"})),
        "memory": ("memory", frozenset({"memory", "snapshot"})),
    }
)
"""Verbs that ask one question: the family of rules that answers it, and the records that other rules answer it from."""

Explain: TypeAlias = "Callable[[Evidence], Diagnosis]"


def explainer(verb: str, target: Target | None = None, *, with_audit: bool = False) -> Explain:
    """Read the settings of the rules now, since a fault in them must not cost a result, and explain later.

    Args:
        verb: whose evidence it will be.
        target: the program, whose source is read as well; `None` where there is no program, as for a file.
        with_audit: answer the checklist too.
    """
    from pyrometer.rules.settings import load_rule_settings

    def concerns(rule: Rule) -> bool:
        if verb not in ABOUT:
            return True
        family, kinds = ABOUT[verb]
        return rule.family == family or any(not kinds.isdisjoint(reading.needs) for reading in rule.readings)

    settings = load_rule_settings(Path.cwd())

    def explained(evidence: Evidence) -> Diagnosis:
        from pyrometer.rules.explain import explain
        from pyrometer.workload.target import entries_of

        assert SEEN_BY[verb].issuperset(evidence.kinds()), f"{verb} observes more than its table says"
        entries = () if target is None else entries_of(target)
        return explain(evidence, entries, settings, with_audit=with_audit, among=concerns)

    return explained
