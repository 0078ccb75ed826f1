from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pyrometer.errors import InputError
from pyrometer.rules.lint.check import check_text
from pyrometer.rules.lint.excusing import excuse_file
from pyrometer.rules.lint.files import SourceFile
from pyrometer.rules.registry import find_rule

FILE = SourceFile(Path("a.py"), "a.py")


def excused(text: str, *rules, reason="before the first audit") -> str:
    return excuse_file(FILE, text.encode(), rules, reason).fixed.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("slow()\n", "slow()  # pyrometer: ignore[PYR890] why\n"),
        ("slow()", "slow()  # pyrometer: ignore[PYR890] why"),
        ("slow(); risky()   \n", "slow(); risky()  # pyrometer: ignore[PYR890, PYR891] why   \n"),
        ("slow()  # noqa\n", "slow()  # noqa  # pyrometer: ignore[PYR890] why\n"),
        (
            "slow(); risky()  # pyrometer: ignore[PYR891] old\n",
            "slow(); risky()  # pyrometer: ignore[PYR891, PYR890] old\n",
        ),
        ("f(\n    slow(),\n)\n", "f(\n    slow(),  # pyrometer: ignore[PYR890] why\n)\n"),
        (
            "if x:\n    y = 1 + \\\n        slow()\n",
            "if x:\n    y = 1 + \\\n        slow()  # pyrometer: ignore[PYR890] why\n",
        ),
        (
            "if x:\n    y = slow() + \\\n        1\n",
            "if x:\n    # pyrometer: ignore[PYR890] why\n    y = slow() + \\\n        1\n",
        ),
        (
            "\tslow('''\n'''), slow('''\n''')\n".lstrip(),
            "# pyrometer: ignore[PYR890] why\nslow('''\n'''), slow('''\n''')\n",
        ),
        ("x = f'''{slow()}\n'''\n", "# pyrometer: ignore[PYR890] why\nx = f'''{slow()}\n'''\n"),
    ],
)
def test_a_comment_stands_where_one_can(slow_call, risky_call, before, after):
    text = excused(f"import torch\n{before}", slow_call, risky_call, reason="why")
    assert text == f"import torch\n{after}"
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(f"import torch\n{before}"))


def test_what_is_found_is_ignored_afterwards_with_the_reason(slow_call, risky_call):
    text = excused("import torch\nslow()\nif slow():\n    risky(slow())\n", slow_call, risky_call)
    checked = check_text("a.py", text, [slow_call, risky_call, find_rule("PYR090"), find_rule("PYR091")])
    assert checked.found == []
    assert {ignore.reason for _, ignore in checked.ignored} == {"before the first audit"}


def test_windows_line_ends_stay(slow_call):
    assert excused("import torch\r\nslow()\r\n", slow_call, reason="why") == (
        "import torch\r\nslow()  # pyrometer: ignore[PYR890] why\r\n"
    )


def test_findings_about_comments_are_not_excused(slow_call):
    text = "import torch\nx = 1  # pyrometer: ignore[PYR890] nothing\n"
    assert excused(text, find_rule("PYR090"), slow_call) == text


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "a # pyrometer: ignore[X] b"])
def test_a_reason_must_be_one(slow_call, reason):
    with pytest.raises(InputError, match=r"--add-ignores: got .*; legal is one line that says why"):
        excused("import torch\nslow()\n", slow_call, reason=reason)
