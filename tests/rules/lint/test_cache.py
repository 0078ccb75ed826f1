from __future__ import annotations

import pytest

import pyrometer.rules.lint.run as running
from pyrometer.rules.lint.cache import FOLDER
from pyrometer.rules.lint.run import lint_paths

SLOW = "import torch\nslow()  # é\nslow()  # pyrometer: ignore[PYR890] rare\n"


@pytest.fixture
def parsed(monkeypatch):
    """The files that were parsed."""
    seen: list[str] = []
    check = running.check_text

    def counting(shown, text, rules, limits):
        seen.append(shown)
        return check(shown, text, rules, limits)

    monkeypatch.setattr(running, "check_text", counting)
    return seen


def test_a_file_that_has_not_changed_is_not_parsed_again(project, slow_call, only, parsed):
    root = project({"a.py": SLOW, "b.py": SLOW})
    settings = only("PYR890", root=str(root))
    first = lint_paths(["."], settings, cache=True)
    assert lint_paths(["."], settings, cache=True) == first == lint_paths(["."], settings)
    assert parsed == ["a.py", "b.py"] * 2
    (root / "a.py").write_text(SLOW + "slow()\n")
    assert len(lint_paths(["."], settings, cache=True).findings) == 3
    assert parsed == ["a.py", "b.py"] * 2 + ["a.py"]


def test_other_rules_are_other_results(project, slow_call, risky_call, only, parsed):
    root = project({"a.py": SLOW})
    lint_paths(["."], only("PYR890", root=str(root)), cache=True)
    assert lint_paths(["."], only("PYR891", root=str(root)), cache=True).findings == []
    assert parsed == ["a.py", "a.py"]


def test_other_limits_are_other_results(project, slow_call, only, parsed):
    root = project({"a.py": SLOW})
    lint_paths(["."], only("PYR890", root=str(root)), cache=True)
    lint_paths(["."], only("PYR890", root=str(root), limits={"PYR504.min_vocabulary": 1.0}), cache=True)
    assert parsed == ["a.py", "a.py"]


def test_other_code_of_rules_is_another_result(project, slow_call, only, parsed, monkeypatch):
    root = project({"a.py": SLOW})
    settings = only("PYR890", root=str(root))
    lint_paths(["."], settings, cache=True)
    monkeypatch.setattr("pyrometer.rules.lint.cache.__version__", "99")
    lint_paths(["."], settings, cache=True)
    assert parsed == ["a.py", "a.py"]


def test_one_file_of_results_per_file_hidden_from_version_control(project, slow_call, only):
    root = project({"a.py": SLOW})
    settings = only("PYR890", root=str(root))
    lint_paths(["."], settings, cache=True)
    (root / "a.py").write_text(SLOW * 2)
    lint_paths(["."], settings, cache=True)
    assert sorted(file.suffix for file in (root / FOLDER).iterdir()) == ["", ".json"]
    assert (root / FOLDER / ".gitignore").read_text() == "*\n"


def test_damaged_results_are_made_again(project, slow_call, only):
    root = project({"a.py": SLOW})
    settings = only("PYR890", root=str(root))
    first = lint_paths(["."], settings, cache=True)
    for file in (root / FOLDER).glob("*.json"):
        file.write_bytes(b"{")
    assert lint_paths(["."], settings, cache=True) == first


def test_a_folder_that_cannot_be_written_costs_time_only(project, slow_call, only):
    root = project({"a.py": SLOW, ".pyrometer": "a file where a folder should be"})
    settings = only("PYR890", root=str(root))
    assert len(lint_paths(["."], settings, cache=True).findings) == 1


def test_what_broke_off_is_tried_again(project, make_rule, only, parsed):
    def breaks(_module):
        raise ValueError("no")

    make_rule("PYR890", "broken-rule", breaks)
    root = project({"a.py": SLOW})
    for _ in range(2):
        assert len(lint_paths(["."], only("PYR890", root=str(root)), cache=True).failures) == 1
    assert parsed == ["a.py", "a.py"]
