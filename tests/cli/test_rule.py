"""`pyrometer rule`: one rule in full, a family, or all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pyrometer.report.schema import schema_of
from pyrometer.rules.registry import rules

ENTRY = "from pyrometer.cli.main import run; run()"


def pyrometer(
    *arguments: str, entry: str = ENTRY, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", entry, *arguments], capture_output=True, text=True, check=False, cwd=cwd
    )


def document(*arguments: str) -> Any:
    done = pyrometer("rule", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    jsonschema.validate(found, schema_of("rule"))
    return found


@pytest.mark.parametrize("which", ["PYR101", "pyr101", "item-in-hot-loop"])
def test_a_rule_is_found_by_code_and_by_name(which: str) -> None:
    done = pyrometer("rule", which)
    assert done.returncode == 0, done.stderr
    for part in ("PYR101 item-in-hot-loop", "What it does", "Why it costs", "Use instead", "Fix safety"):
        assert part in done.stdout


def test_the_beginning_of_codes_lists_a_family() -> None:
    listed = [one["code"] for one in document("PYR1")["rules"]]
    assert listed == [rule.code for rule in rules() if rule.code.startswith("PYR1")]
    assert "PYR101" in pyrometer("rule", "PYR1").stdout


def test_without_a_name_all_are_listed() -> None:
    assert [one["code"] for one in document()["rules"]] == [rule.code for rule in rules()]


def test_an_unknown_rule_is_one_line_with_near_names() -> None:
    done = pyrometer("rule", "item-in-hot-lop")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "item-in-hot-loop" in done.stderr
    assert pyrometer("rule", "PYR999").returncode == 2


def test_no_torch_is_imported() -> None:
    entry = (
        "import sys, atexit\n"
        "atexit.register(lambda: print([m for m in sys.modules if m.split('.')[0] == 'torch'], file=sys.stderr))\n"
        f"{ENTRY}"
    )
    for arguments in (["rule"], ["rule", "PYR101", "--json"]):
        done = pyrometer(*arguments, entry=entry)
        assert done.returncode == 0
        assert done.stderr.strip() == "[]"
