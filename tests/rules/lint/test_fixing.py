from __future__ import annotations

import ast
import codecs
import os
import re
import stat
from pathlib import Path

import pytest

from pyrometer.errors import InputError
from pyrometer.rules.lint.changing import change_files, fixes
from pyrometer.rules.lint.check import Found, check_text
from pyrometer.rules.lint.files import SourceFile, files_of
from pyrometer.rules.lint.fixing import EVERY_CLASS, EXACT, fix_file, fix_text, write_fixed
from pyrometer.rules.match import Fix, match
from pyrometer.rules.registry import find_rule, rules
from pyrometer.source.edit import Edit


def fixed(text: str, *rules, classes=EXACT):
    return fix_text(text, lambda now: check_text("a.py", now, rules).found, classes)


@pytest.fixture
def editing(make_rule):
    """`editing(lambda line: (begin, end, text))`: a rule whose fix edits each statement of a text by columns."""

    def make(*edits, code="PYR893", when="") -> object:
        def check(module):
            for node in module.tree.body[1:]:
                if when in module.source(node):
                    made = [
                        Edit(line=node.lineno, column=a, end_line=node.lineno, end_column=b, text=text)
                        for a, b, text in edits
                    ]
                    yield match(node, "found", fix=Fix(fix_class="exact", title="Edit", edits=made))

        return make_rule(code, f"edit-{code.lower()}", check)

    return make


def test_fixes_are_applied_until_nothing_is_left(slow_call):
    result = fixed("import torch\nslow(slow(), slow())\n", slow_call)
    assert result.text == "import torch\nfast(fast(), fast())\n"
    assert result.applied == ["PYR890"] * 3
    assert result.dropped == []


def test_only_exact_fixes_are_applied_unasked(slow_call, risky_call):
    text = "import torch\nslow()\nrisky()\n"
    assert fixed(text, slow_call, risky_call).text == "import torch\nfast()\nrisky()\n"
    assert fixed(text, slow_call, risky_call, classes=EVERY_CLASS).text == "import torch\nfast()\nsafe()\n"


def test_what_is_ignored_is_not_fixed(slow_call):
    text = "import torch\nslow()  # pyrometer: ignore[PYR890] no\n"
    assert fixed(text, slow_call).text == text


def test_fixes_that_overlap_are_applied_one_after_the_other(editing, slow_call):
    editing((0, 4, "slower"), code="PYR894", when="slow()")
    both = [slow_call, find_rule("PYR894")]
    result = fixed("import torch\nslow()\n", *both)
    assert result.text == "import torch\nfast()\n"
    assert result.applied == ["PYR890"]


def test_edits_of_one_fix_go_together(editing):
    rule = editing((0, 1, "a"), (4, 5, "a"), when="b + b")
    assert fixed("import torch\nb + b\n", rule).text == "import torch\na + a\n"


def test_a_fix_that_breaks_the_text_is_dropped_and_the_others_are_kept(editing, slow_call):
    rule = editing((0, 1, "("), when="x = 1")
    result = fixed("import torch\nx = 1\nslow()\n", rule, slow_call)
    assert result.text == "import torch\nx = 1\nfast()\n"
    assert result.dropped == ["line 2: PYR893 edit-pyr893: its fix would break the file and was dropped"]


@pytest.mark.parametrize(
    "edits", [[(0, 3, "a"), (2, 4, "b")], [(4, 2, "a")], [(0, 1, "x")]], ids=["overlap", "backwards", "same"]
)
def test_a_fix_that_cannot_be_made_is_dropped(editing, edits):
    rule = editing(*edits)
    result = fixed("import torch\nx = 1\n", rule)
    assert result.text == "import torch\nx = 1\n"
    assert len(result.dropped) == 1


def test_fixes_that_undo_each_other_change_nothing(editing):
    there, back = editing((0, 1, "y"), when="x = 1"), editing((0, 1, "x"), code="PYR894", when="y = 1")
    result = fixed("import torch\nx = 1\n", there, back)
    assert result.text == "import torch\nx = 1\n"
    assert result.applied == []
    assert "do not come to rest" in result.dropped[0]


def test_unused_ignores_are_taken_out(slow_call, risky_call):
    text = (
        "import torch\n"
        "# pyrometer: ignore-file[PYR890] nothing\n"
        "x = 1  # pyrometer: ignore[PYR999] no  # noqa\n"
        "y = 1  # pyrometer: ignore[PYR999, PYR891] of another rule\n"
        "    # pyrometer: ignore[PYR999] last"
    )
    assert fixed(text, find_rule("PYR090"), slow_call).text == (
        "import torch\nx = 1 # noqa\ny = 1  # pyrometer: ignore[PYR891] of another rule\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"import torch\r\nslow()\r\ny = 1", b"import torch\r\nfast()\r\ny = 1"),
        (b"import torch\r\nslow()\ny = 1\n", b"import torch\r\nfast()\ny = 1\n"),
        (codecs.BOM_UTF8 + b"import torch\nslow()", codecs.BOM_UTF8 + b"import torch\nfast()"),
        (b"import torch\nif x:\n\tslow()\n", b"import torch\nif x:\n\tfast()\n"),
        (
            "# coding: latin-1\nimport torch\nx = 'é', slow()\n".encode("latin-1"),
            "# coding: latin-1\nimport torch\nx = 'é', fast()\n".encode("latin-1"),
        ),
        ("import torch\nx = '日本', slow()\n".encode(), "import torch\nx = '日本', fast()\n".encode()),
        (b"import torch\x0c\nslow()\n", b"import torch\x0c\nfast()\n"),
    ],
)
def test_line_ends_marks_encodings_and_tabs_are_kept(slow_call, before, after):
    result = fix_file(SourceFile(Path("a.py"), "a.py"), before, [slow_call], EXACT)
    assert result.content == after


def test_a_fix_that_the_encoding_cannot_hold_is_dropped(editing):
    rule = editing((0, 1, "'€'"), when="x")
    data = b"# coding: latin-1\nimport torch\nx\n"
    result = fix_file(SourceFile(Path("a.py"), "a.py"), data, [rule], EXACT)
    assert result.content is None
    assert "'€' cannot be written in iso-8859-1; nothing was changed" in result.fixed.dropped[0]


def test_files_are_written_whole_with_their_mode_and_through_links(project, slow_call, only):
    root = project({"real/a.py": "import torch\nslow()\n", "b.py": "import torch\n"})
    (root / "real" / "a.py").chmod(0o750)
    (root / "link.py").symlink_to("real/a.py")
    untouched = (root / "b.py").stat().st_mtime_ns
    settings = only("PYR890", root=str(root))
    changed = change_files(files_of(["link.py", "b.py"], settings), settings, fixes(EXACT), write=True)
    assert changed.num_applied == 1
    assert (root / "link.py").is_symlink()
    assert (root / "real" / "a.py").read_text() == "import torch\nfast()\n"
    assert stat.S_IMODE((root / "real" / "a.py").stat().st_mode) == 0o750
    assert (root / "b.py").stat().st_mtime_ns == untouched
    assert sorted(file.name for file in (root / "real").iterdir()) == ["a.py"]


def test_a_file_that_changes_meanwhile_is_left_alone(project, slow_call):
    root = project({"a.py": "import torch\nslow()\n"})
    data = (root / "a.py").read_bytes()
    result = fix_file(SourceFile(root / "a.py", "a.py"), data, [slow_call], EXACT)
    (root / "a.py").write_text("import torch\nother()\n")
    with pytest.raises(InputError, match=r"a\.py: has changed while it was linted; it was left alone"):
        write_fixed(result, data)
    assert (root / "a.py").read_text() == "import torch\nother()\n"


def test_one_file_that_fails_is_told_and_the_others_are_fixed(project, slow_call, only):
    root = project({"a.py": "import torch\n(", "b.py": "import torch\nslow()\n"})
    settings = only("PYR890", root=str(root))
    files = [*files_of(["a.py", "b.py"], settings), SourceFile(root / "gone.py", "gone.py")]
    changed = change_files(files, settings, fixes(EXACT), write=True)
    assert [failure.partition(":")[0] for failure in changed.failures] == ["a.py", "gone.py"]
    assert (root / "b.py").read_text() == "import torch\nfast()\n"


def test_a_diff_shows_the_change_and_writes_nothing(project, slow_call, only):
    root = project({"a.py": "import torch\r\nx = 1\r\nslow()"})
    settings = only("PYR890", root=str(root))
    changed = change_files(files_of(["a.py"], settings), settings, fixes(EXACT), write=False)
    assert changed.files[0].diff() == (
        "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n import torch\r\n x = 1\r\n-slow()\n"
        "\\ No newline at end of file\n+fast()\n\\ No newline at end of file\n"
    )
    assert (root / "a.py").read_bytes().endswith(b"slow()")


def _fixes_of(text: str) -> list[Found]:
    return check_text("train.py", text, [rule for rule in rules() if rule.source_checks]).found


def test_fixes_of_real_rules_come_to_rest_in_the_examples():
    """Every fix of every rule, on every example of the documentation: the text stays Python and settles."""
    for rule in rules():
        for code in re.findall(r"```python\n(.*?)```", rule.section("Example"), re.DOTALL):
            text = f"import torch\n{code}"
            result = fix_text(text, _fixes_of, EVERY_CLASS)
            ast.parse(result.text)
            assert result.dropped == [], rule.code


def test_the_umask_decides_nothing_about_a_fixed_file(project, slow_call, only):
    root = project({"a.py": "import torch\nslow()\n"})
    (root / "a.py").chmod(0o664)
    before = os.umask(0o077)
    try:
        settings = only("PYR890", root=str(root))
        change_files(files_of(["a.py"], settings), settings, fixes(EXACT), write=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o664
