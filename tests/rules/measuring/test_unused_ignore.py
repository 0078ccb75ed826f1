"""Comments that ignore nothing; how they are told apart is in `tests/rules/lint/test_check.py`."""

from __future__ import annotations

import ast

import pytest

from pyrometer.rules.lint.check import check_text
from pyrometer.rules.lint.fixing import EXACT, fix_text
from pyrometer.rules.registry import rules

HOT = "import torch\n\ndef train(model: torch.nn.Module, loader):\n    for batch in loader:\n        loss = model(batch).mean()\n        print(loss.item()){}\n"


def found(text: str):
    return [hit.match for hit in check_text("train.py", text, rules()).found if hit.rule.code == "PYR090"]


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx = 1  # pyrometer: ignore[PYR101] once\n",
        "import torch\nx = 1  # pyrometer: ignore[item-in-hot-loop] once\n",
        "import torch\nx = 1  # pyrometer: ignore[no-such-rule] once\n",
        "import torch\nx = 1  # pyrometer: ignore everything\n",
        "import torch\nx = 1  # noqa: PYR101\n",
        "import numpy\nx = 1  # pyrometer: ignore[PYR101] no torch here\n",
    ],
)
def test_it_fires(text):
    assert [one.line for one in found(text)] == [2]


@pytest.mark.parametrize(
    "text",
    [
        HOT.format("  # pyrometer: ignore[PYR101, PYR103] once a day"),
        HOT.format("  # pyrometer: ignore[PYR1] once a day"),
        HOT.format("  # noqa: PYR1"),
        "import torch\nx = 1  # noqa: E501\n",
        "import torch\nx = '# pyrometer: ignore[PYR101] a string'\n",
        "import torch\nx = 1  # pyrometer: the ignore[PYR101] of old\n",
    ],
)
def test_it_stays_silent(text):
    if "ignore[PYR101, PYR103]" in text:  # both fire here; where only one does, the other is unused
        text = text.replace("PYR101, PYR103", ", ".join(sorted(_codes(HOT.format("")))))
    assert found(text) == []


def test_its_fix_takes_the_comment_out_and_nothing_else():
    text = HOT.format("  # pyrometer: ignore[PYR805] no").replace(
        "print(", "x = 1  # pyrometer: ignore[no-such-rule] no\n        print("
    )
    fixed = fix_text(text, lambda now: check_text("a.py", now, rules()).found, EXACT)
    assert "no-such-rule" not in fixed.text
    assert ast.dump(ast.parse(fixed.text)) == ast.dump(ast.parse(text))


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("  # noqa: PYR101", ""),
        ("  # noqa: PYR101, E501", "  # noqa: E501"),
        ("  # noqa: E501,PYR101 F401 why", "  # noqa: E501, F401 why"),
        ("  # type: ignore # noqa: PYR101", "  # type: ignore"),
    ],
)
def test_codes_of_other_linters_stay(comment, left):
    text = f"import torch\nx = 1{comment}\n"
    assert (
        fix_text(text, lambda now: check_text("a.py", now, rules()).found, EXACT).text
        == f"import torch\nx = 1{left}\n"
    )


def _codes(text: str) -> set[str]:
    return {hit.rule.code for hit in check_text("train.py", text, rules()).found if hit.match.line == 6}
