"""Comments that ignore a rule without saying why."""

from __future__ import annotations

import pytest

from pyrometer.rules.lint.check import check_text
from pyrometer.rules.registry import find_rule

HOT = "import torch\n\ndef train(model: torch.nn.Module, loader):\n    for batch in loader:\n        x = model(batch).mean().item(){}\n"


def found(text: str, *codes: str):
    rules = [find_rule(code) for code in ("PYR091", *codes)]
    return [hit.match for hit in check_text("train.py", text, rules).found if hit.rule.code == "PYR091"]


@pytest.mark.parametrize(
    "comment", ["# pyrometer: ignore[PYR101]", "# noqa # pyrometer:ignore[PYR101]  # noqa"]
)
def test_it_fires_and_the_rule_is_ignored_all_the_same(comment):
    text = HOT.format(f"  {comment}")
    assert [one.line for one in found(text, "PYR101")] == [5]
    codes = [hit.rule.code for hit in check_text("train.py", text, [find_rule("PYR101")]).found]
    assert codes == []


@pytest.mark.parametrize(
    "comment",
    [
        "# pyrometer: ignore[PYR101] once a day",
        "# pyrometer: ignore[PYR101] x",
        "# noqa: E501",
        "# pyrometer: see the docs",
    ],
)
def test_it_stays_silent(comment):
    assert found(HOT.format(f"  {comment}"), "PYR101") == []


def test_its_advice_ends_it():
    text = HOT.format("  # pyrometer: ignore[PYR101]")
    (one,) = found(text, "PYR101")
    assert one.advice == "Write the reason behind the brackets."
    assert one.fix is None
    assert found(text.replace("[PYR101]", "[PYR101] ten batches a day"), "PYR101") == []
