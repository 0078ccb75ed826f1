"""Every rule is whole: its code, its documentation, its limits, its tests."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from pyrometer.errors import InputError, UsageError
from pyrometer.rules.audit.audit import GROUPS
from pyrometer.rules.registry import find_rule, needs_in_text, rules, rules_for, select
from pyrometer.rules.rule import HEADINGS, Rule, declare
from pyrometer.rules.settings import RuleSettings

TESTS = Path(__file__).parent
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)

ABOUT_LINTING = {"PYR090", "PYR091", "PYR092"}


def stem_of(rule: Rule) -> str:
    """The file that declares a rule is named like it."""
    return rule.name.replace("-", "_")


def all_but(holds: Callable[[Rule], bool]) -> list[str]:
    """The rules that something does not hold for."""
    return [rule.code for rule in rules() if not holds(rule)]


def test_a_rule_lies_in_the_file_of_its_name():
    files = {rule: import_module(f"pyrometer.rules.{rule.family}.{stem_of(rule)}") for rule in rules()}
    assert all_but(lambda rule: files[rule].RULE is rule) == []


def test_the_documentation_has_every_heading_in_order():
    assert all_but(lambda rule: re.findall(r"^## (.+)$", rule.doc, re.MULTILINE) == list(HEADINGS)) == []
    assert all_but(lambda rule: all(map(rule.section, HEADINGS))) == []
    assert all_but(lambda rule: rule.summary.endswith(".")) == []


def test_the_example_and_what_to_use_instead_are_python():
    for rule in rules():
        for heading in ("Example", "Use instead"):
            for code in BLOCK.findall(rule.section(heading)):
                ast.parse(code, filename=rule.code)


def test_a_rule_can_answer_and_gives_a_reason_for_each_limit():
    assert set(all_but(lambda rule: rule.source_checks or rule.readings)) == ABOUT_LINTING
    assert all_but(lambda rule: all(len(limit.reason) > 20 for limit in rule.limits)) == []
    assert all_but(lambda rule: (rule.stage == "deprecated") == (rule.successor is not None)) == []


def test_a_rule_is_tested_beside_its_family():
    untested = all_but(lambda rule: (TESTS / rule.family / f"test_{stem_of(rule)}.py").is_file())
    assert set(untested) <= ABOUT_LINTING


def test_the_kinds_that_a_rule_needs_are_read_from_its_text():
    def is_read(rule):
        text = Path(sys.modules[f"pyrometer.rules.{rule.family}.{stem_of(rule)}"].__file__).read_text("utf-8")
        return needs_in_text(text) == [frozenset(reading.needs) for reading in rule.readings]

    assert all_but(is_read) == []


def test_rules_for_some_kinds_are_those_that_these_can_answer():
    kinds = {"trace", "environment"}
    able = [rule for rule in rules() if any(kinds.issuperset(reading.needs) for reading in rule.readings)]
    assert list(rules_for(kinds)) == able
    assert RuleSettings().chosen_for(kinds) == [rule for rule in able if rule.stage == "stable"]
    assert able[0] not in RuleSettings(ignore={able[0].code: "not here"}).chosen_for(kinds)


def test_rules_that_nothing_at_hand_can_answer_are_not_imported():
    code = (
        "from pyrometer.rules.registry import rules_for; rules_for({'job'}); import sys;"
        "print(*sorted(name for name in sys.modules if name.startswith('pyrometer.rules.')))"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "pyrometer.rules.distributed.straggler_rank" in said
    assert "pyrometer.rules.host.launch_bound" not in said


def test_every_rule_that_the_checklist_names_exists():
    named = {code for items in GROUPS.values() for item in items for code in item.rules}
    assert named <= {rule.code for rule in rules()}
    codes = [item.code for items in GROUPS.values() for item in items]
    assert len(codes) == len(set(codes))


def test_a_code_or_name_that_is_taken_is_refused_and_both_are_named():
    taken = rules()[0]
    fields = {"doc": "Other.", "severity": "info", "fix_class": "exact"}
    with pytest.raises(InputError, match=f"{taken.code} {taken.name} already"):
        declare(code=taken.code, name="another-name", **fields)
    with pytest.raises(InputError, match=f"{taken.code} {taken.name} already"):
        declare(code="PYR899", name=taken.name, **fields)


@pytest.mark.parametrize(("code", "name"), [("PYR9", "fine"), ("XYZ101", "fine"), ("PYR101", "Not Fine")])
def test_a_code_or_name_of_another_form_is_refused(code, name):
    with pytest.raises(InputError, match="legal"):
        declare(code=code, name=name, doc="Other.", severity="info", fix_class="exact")


def test_rules_are_found_by_code_and_by_name_in_either_case():
    rule = rules()[0]
    assert find_rule(rule.code.lower()) is rule
    assert find_rule(rule.name.upper()) is rule


def test_a_misspelt_rule_is_answered_with_near_ones():
    with pytest.raises(UsageError, match=r"did you mean .*item-in-hot-loop"):
        find_rule("item-in-hot-lop")


def test_selectors_name_codes_names_and_families():
    family = select(["PYR1"])
    assert {rule.family for rule in family} == {"host"}
    assert select(["ALL"]) == list(rules())
    assert select(["PYR101", "item-in-hot-loop"]) == [find_rule("PYR101")]


def test_loading_all_rules_imports_no_torch():
    code = "from pyrometer.rules.registry import rules; rules(); import sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
