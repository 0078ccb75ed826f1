from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyrometer.errors import InputError
from pyrometer.rules.lint.files import files_of
from pyrometer.rules.settings import RuleSettings

TREE = {
    "a.py": "",
    "b.txt": "",
    "n.ipynb": "{}",
    "stub.pyi": "",
    ".hidden.py": "",
    "pkg/c.py": "",
    "pkg/build/d.py": "",
    ".venv/lib/e.py": "",
    "node_modules/f.py": "",
    "x.egg-info/g.py": "",
    "pkg/site-packages/h.py": "",
    "x.py/i.py": "",
}


@pytest.fixture
def tree(project):
    return project(TREE)


def names(paths, **fields) -> list[str]:
    return [file.shown for file in files_of(paths, RuleSettings(root=str(Path.cwd()), **fields))]


def test_folders_are_searched_for_sources_and_notebooks_but_not_for_what_tools_built(tree):
    assert names(["."]) == ["a.py", "n.ipynb", "pkg/c.py", "x.py/i.py"]


def test_what_is_named_is_linted_whatever_it_is(tree):
    assert names(["b.txt", ".hidden.py", "pkg/build", ".venv/lib"]) == [
        ".hidden.py",
        ".venv/lib/e.py",
        "b.txt",
        "pkg/build/d.py",
    ]


def test_what_the_user_excludes_is_left_out_however_it_is_reached(tree):
    assert names([".", "pkg/c.py"], exclude=["pkg"]) == ["a.py", "n.ipynb", "x.py/i.py"]
    assert names(["a.py", "pkg"], exclude=["**/c.py", "a.py"]) == []


def test_a_file_that_is_reached_twice_is_linted_once(tree):
    assert names(["a.py", "./a.py", str(tree / "a.py"), "*.py"]) == ["a.py", "x.py/i.py"]


def test_patterns_that_the_shell_left_are_expanded(tree):
    assert names(["**/c.py"]) == ["pkg/c.py"]
    assert names(["[ab].*"]) == ["a.py", "b.txt"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.py", "nowhere.py: there is no such file or folder; pass files, folders, or - for stdin"),
        ("no*where", "no*where: no file has this pattern; legal are files, folders and patterns"),
        ("", "'': there is no such file or folder"),
    ],
)
def test_what_does_not_exist_is_refused(tree, path, message):
    with pytest.raises(InputError) as caught:
        names([path])
    assert str(caught.value).startswith(message)


def test_links_make_no_loops_and_count_once(tree):
    (tree / "pkg" / "loop").symlink_to(tree)
    (tree / "self.py").symlink_to("self.py")
    (tree / "twin.py").symlink_to("a.py")
    assert names(["."]) == ["a.py", "n.ipynb", "pkg/c.py", "self.py", "x.py/i.py"]


def test_files_elsewhere_are_shown_whole(tree, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "o.py"
    other.touch()
    assert names([str(other)]) == [other.as_posix()]


def test_odd_names_are_printable(tree):
    (tree / "line\nbreak\x1b.py").touch()
    assert "line\\nbreak\\x1b.py" in names(["."])


def test_names_that_are_no_text_are_printable(tree):
    try:
        Path(os.fsdecode(b"\xff.py")).touch()
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    assert "\\xff.py" in names(["."])


def test_a_fifo_below_a_folder_is_no_source(tree):
    os.mkfifo(tree / "pipe.py")
    assert "pipe.py" not in names(["."])


def test_a_fifo_that_is_named_is_refused_and_one_that_a_pattern_fits_is_left_out(tree):
    os.mkfifo(tree / "pipe.py")
    (tree / "piped.py").symlink_to("pipe.py")
    for name in ("pipe.py", "piped.py", os.devnull):
        with pytest.raises(InputError, match=r"is a pipe or device; pass files and folders, or - for stdin"):
            names([name])
    assert names(["[ap]*.py"]) == ["a.py"]
    with pytest.raises(InputError, match="no file has this pattern"):
        names(["pip*.py"])


def test_a_file_is_told_by_its_own_name_whichever_of_its_links_is_met_first(tree):
    (tree / "0.py").symlink_to("a.py")
    (tree / "1.py").symlink_to("a.py")
    assert names(["0.py", ".", "1.py"])[0] == "a.py"
    assert names(["1.py", "0.py"]) == ["0.py"]
