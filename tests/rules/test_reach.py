"""Every rule is reachable from a command line."""

from __future__ import annotations

from reach import reach_table, reaches

from pyrometer.evidence.evidence import Evidence
from pyrometer.evidence.kinds import SEEN_BY
from pyrometer.rules.registry import find_rule, rules


def test_a_verb_reaches_every_rule() -> None:
    reached = set().union(*reach_table(rules()).values())
    assert {rule.code: rule.readings for rule in rules() if rule.code not in reached} == {}


def test_rules_about_ranks_are_reached_by_files_of_ranks() -> None:
    about_ranks = [rule for rule in rules() if any("job" in reading.needs for reading in rule.readings)]
    assert len(about_ranks) >= 4
    assert all(reaches("trace", rule) for rule in about_ranks)


def test_a_verb_reaches_no_more_than_it_observes() -> None:
    assert reaches("check", find_rule("PYR607"))  # with --nproc
    assert not reaches("audit", find_rule("PYR607"))  # one process has no other ranks
    assert reaches("lint", find_rule("PYR101"))
    assert not reaches("lint", find_rule("PYR010"))


def test_what_verbs_observe_are_parts_of_evidence() -> None:
    assert set().union(*SEEN_BY.values()) <= set(Evidence.__struct_fields__)
