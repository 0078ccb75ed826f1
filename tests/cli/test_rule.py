"""`pyrometer rule`: one rule in full, a family, or all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pyrometer.report.schema import schema_of
from pyrometer.rules.registry import rules

ENTRY = "from pyrometer.cli.main import run; run()"


@pytest.fixture
def rule(call: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """The verb, in this process."""
    return lambda *arguments: call(tmp_path, "rule", *arguments)


def document(done: Any) -> Any:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    jsonschema.validate(found, schema_of("rule"))
    return found


@pytest.mark.parametrize("which", ["PYR101", "pyr101", "item-in-hot-loop"])
def test_a_rule_is_found_by_code_and_by_name(rule: Callable[..., Any], which: str) -> None:
    done = rule(which)
    assert done.returncode == 0, done.stderr
    for part in ("PYR101 item-in-hot-loop", "What it does", "Why it costs", "Use instead", "Fix safety"):
        assert part in done.stdout


def test_the_beginning_of_codes_lists_a_family(rule: Callable[..., Any]) -> None:
    listed = [one["code"] for one in document(rule("PYR1", "--json"))["rules"]]
    assert listed == [one.code for one in rules() if one.code.startswith("PYR1")]
    assert "PYR101" in rule("PYR1").stdout


def test_without_a_name_all_are_listed(rule: Callable[..., Any]) -> None:
    assert [one["code"] for one in document(rule("--json"))["rules"]] == [one.code for one in rules()]


def test_an_unknown_rule_is_one_line_with_near_names(rule: Callable[..., Any]) -> None:
    done = rule("item-in-hot-lop")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "item-in-hot-loop" in done.stderr
    assert rule("PYR999").returncode == 2
