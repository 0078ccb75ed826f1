"""What the pages of rules show: an example has the fault, and what to write instead has none."""

from __future__ import annotations

import re

from pyrometer.rules.lint.check import check_text
from pyrometer.rules.registry import find_rule, rules

PATH = "train.py"
IN_SOURCE = [rule.code for rule in rules() if rule.source_checks]


def codes(which: str, heading: str) -> list[str]:
    """What all rules say about the code below a heading."""
    blocks = re.findall(r"```python\n(.*?)```", find_rule(which).section(heading), re.DOTALL)
    assert blocks, f"{which} shows no code below {heading}"
    checked = check_text(PATH, "\n".join(blocks), rules())
    assert checked.failures == []
    assert checked.module.imports_torch, (
        f"{which}: code below {heading} imports nothing of torch, so no rule reads it"
    )
    return [hit.rule.code for hit in checked.found]


def test_an_example_has_the_fault() -> None:
    assert [which for which in IN_SOURCE if which not in codes(which, "Example")] == []


def test_what_to_write_instead_has_no_fault() -> None:
    found = {which: codes(which, "Use instead") for which in IN_SOURCE}
    assert {which: others for which, others in found.items() if others} == {}
