from __future__ import annotations

import json

import pytest

from pyrometer.errors import InputError
from pyrometer.rules.lint.baseline import (
    Baseline,
    num_gone,
    read_baseline,
    without_known,
    write_baseline,
)
from pyrometer.rules.lint.run import lint_paths

SLOW = "import torch\nslow()\nslow()\n"


@pytest.fixture
def look(project, slow_call, only):
    """A project, and what is found in it."""
    root = project({"src/a.py": SLOW, "src/b.py": SLOW})
    return root, lambda *paths: lint_paths(paths or ["src"], only("PYR890", root=str(root)))


def files_of(result):
    return sorted({finding.file for finding in result.findings})


def test_what_the_baseline_knows_is_not_told_and_stays_known_when_lines_move(look):
    root, find = look
    path = root / "known.json"
    assert write_baseline(path, find(), ["src/a.py", "src/b.py"], Baseline()) == 4
    (root / "src/a.py").write_text("import torch\n\n# words\nif x:\n    slow()\nslow()\nslow(3)\n")
    left = without_known(find(), read_baseline(path), path)
    assert [(finding.file, finding.line) for finding in left.findings] == [("src/a.py", 7)]
    assert {suppressed.by for suppressed in left.suppressed} == {"baseline"}
    assert left.suppressed[0].reason == "in known.json"


def test_one_more_of_the_same_is_new(look):
    root, find = look
    path = root / "known.json"
    write_baseline(path, find(), ["src/a.py", "src/b.py"], Baseline())
    (root / "src/a.py").write_text(SLOW + "slow()\n")
    assert [finding.line for finding in without_known(find(), read_baseline(path), path).findings] == [4]


def test_findings_that_are_gone_are_counted_and_leave_at_the_next_writing(look):
    root, find = look
    path, files = root / "known.json", ["src/a.py", "src/b.py"]
    write_baseline(path, find(), files, Baseline())
    (root / "src/a.py").write_text("import torch\nslow()\n")
    assert num_gone(find(), read_baseline(path), path, files) == 1
    assert num_gone(find("src/b.py"), read_baseline(path), path, ["src/b.py"]) == 0
    assert write_baseline(path, find(), files, read_baseline(path)) == 3


def test_files_that_were_not_linted_stay_while_they_exist(look):
    root, find = look
    path = root / "known.json"
    write_baseline(path, find(), ["src/a.py", "src/b.py"], Baseline())
    assert write_baseline(path, find("src/a.py"), ["src/a.py"], read_baseline(path)) == 4
    (root / "src/b.py").unlink()
    assert write_baseline(path, find("src/a.py"), ["src/a.py"], read_baseline(path)) == 2


def test_paths_count_from_the_baseline_wherever_one_stands(look, monkeypatch):
    root, find = look
    (root / "config").mkdir()
    path = root / "config" / "known.json"
    write_baseline(path, find(), ["src/a.py", "src/b.py"], Baseline())
    assert {finding["file"] for finding in json.loads(path.read_bytes())["findings"]} == {
        "../src/a.py",
        "../src/b.py",
    }
    monkeypatch.chdir(root / "src")
    assert without_known(find("."), read_baseline(path), path).findings == []


def test_a_baseline_changes_only_where_findings_do(look):
    root, find = look
    path, files = root / "known.json", ["src/a.py", "src/b.py"]
    write_baseline(path, find(), files, Baseline())
    before = path.read_bytes()
    (root / "src/a.py").write_text("\n" + SLOW)
    write_baseline(path, find(), files, read_baseline(path))
    assert path.read_bytes() == before


def test_files_that_cannot_be_read_are_never_lived_with(project, only):
    root = project({"a.py": "import torch\n("})
    result = lint_paths(["a.py"], only("PYR092", root=str(root)))
    assert write_baseline(root / "known.json", result, ["a.py"], Baseline()) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory; `pyrometer lint --update-baseline` writes one"),
        (b"{", "not a Baseline record: .*; restore it, or write another with --update-baseline"),
        (b'{"version": 2}', "a baseline of version 2; legal is 1"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path, content, message):
    path = tmp_path / "known.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_baseline(path)
