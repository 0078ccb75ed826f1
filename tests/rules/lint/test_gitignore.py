from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from pyrometer.errors import InputError
from pyrometer.rules.lint.files import files_of
from pyrometer.rules.lint.gitignore import read_patterns, verdict
from pyrometer.rules.settings import RuleSettings


def names(*paths: str, **fields) -> list[str]:
    return [file.shown for file in files_of(paths, RuleSettings(root=str(Path.cwd()), **fields))]


def test_what_gitignore_names_is_left_out_of_folders_and_linted_where_it_is_named(project):
    project({".gitignore": "gen/\n/old.py\n", "a.py": "", "old.py": "", "src/old.py": "", "src/gen/b.py": ""})
    assert names(".") == ["a.py", "src/old.py"]
    assert names("src", "old.py", "src/gen/b.py") == ["old.py", "src/gen/b.py", "src/old.py"]


def test_a_folder_that_is_left_out_is_linted_where_it_is_named_but_for_what_its_own_files_name(project):
    project(
        {".gitignore": "gen/\n*.tmp.py\n", "gen/.gitignore": "b.py\n", "gen/a.tmp.py": "", "gen/b.py": ""}
    )
    assert names("gen") == ["gen/a.tmp.py"]


def test_nearer_files_decide_and_a_folder_that_is_let_in_again_lets_in_nothing_else(project):
    project(
        {
            ".gitignore": "gen\n*.tmp.py\n",
            "src/.gitignore": "!gen\n",
            "src/gen/a.py": "",
            "src/gen/a.tmp.py": "",
            "gen/b.py": "",
        }
    )
    assert names(".") == ["src/gen/a.py"]


def test_files_of_the_folders_around_count_up_to_the_root_of_the_repository(project):
    root = project({"repo/.git/info/exclude": "secret.py\n", "repo/pkg/secret.py": "", "repo/pkg/a.py": ""})
    (root / ".gitignore").write_text("*.py\n")
    assert names("repo/pkg") == ["repo/pkg/a.py"]
    assert names(".") == ["repo/pkg/a.py"]  # also from above: a repository within has rules of its own
    shutil.rmtree(root / "repo/.git")
    assert names("repo/pkg") == []


def test_without_a_repository_files_count_from_the_folder_of_the_project(project):
    root = project(
        {".gitignore": "a.py\n", "inner/.gitignore": "b.py\n", "inner/pkg/a.py": "", "inner/pkg/b.py": ""}
    )
    settings = RuleSettings(root=str(root / "inner"))
    assert [file.shown for file in files_of(["inner/pkg"], settings)] == ["inner/pkg/a.py"]
    elsewhere = RuleSettings(root=str(root / "elsewhere"))
    assert len(files_of(["inner/pkg"], elsewhere)) == 2


def test_an_ignore_file_decides_before_gitignore(project):
    project({".ignore": "a.py\n!b.py\n", ".gitignore": "b.py\n", "a.py": "", "b.py": "", "c.py": ""})
    assert names(".") == ["b.py", "c.py"]


def test_they_can_be_switched_off_while_exclude_holds(project):
    project({".gitignore": "a.py\n", ".ignore": "b.py\n", "a.py": "", "b.py": "", "c.py": ""})
    assert names(".", respect_gitignore=False, exclude=["c.py"]) == ["a.py", "b.py"]


def test_odd_files_are_read_as_git_reads_them(project):
    project(
        {".gitignore": b"\xef\xbb\xbfa.py\r\n[\n\\\n!\n[z-a].py\n# b.py\n\xff.py\n", "a.py": "", "b.py": ""}
    )
    assert names(".") == ["b.py"]


def test_a_file_that_cannot_be_read_is_one_line_that_says_what_to_do(project):
    root = project({"a.py": ""})
    (root / ".gitignore").symlink_to("nowhere")
    with pytest.raises(
        InputError, match=r"\.gitignore: cannot be opened: .*; mend it, or set respect-gitignore"
    ):
        names(".")


@pytest.mark.parametrize(
    ("line", "fits", "fits_not"),
    [
        ("x.py", ["x.py", "a/x.py"], ["x.pyi", "ax.py"]),
        ("/x.py", ["x.py"], ["a/x.py"]),
        ("a/x.py", ["a/x.py"], ["b/a/x.py"]),
        ("*.py", ["x.py", "a/.py"], ["x.py/y"]),
        ("a/*", ["a/x"], ["a/x/y", "a"]),
        ("a/**", ["a/x", "a/x/y"], ["a"]),
        ("**/x", ["x", "a/b/x"], ["ax"]),
        ("a/**/x", ["a/x", "a/b/c/x"], ["ax", "a/bx"]),
        ("?[!a-c]", ["xd", "x#"], ["xb", "x/", "x"]),
        ("[]x]", ["]", "x"], ["[]x]"]),
        ("[[:digit:]_]", ["1", "_"], ["a", ":"]),
        (r"\#x", ["#x"], [r"\#x"]),
        (r"x\ ", ["x "], ["x"]),
        ("x  ", ["x"], ["x  "]),
    ],
)
def test_patterns(line, fits, fits_not):
    patterns = read_patterns(line)
    assert [verdict(patterns, path, is_folder=False) for path in (*fits, *fits_not)] == [True] * len(fits) + [
        None
    ] * len(fits_not)


def test_a_slash_at_the_end_means_folders():
    patterns = read_patterns("gen/")
    assert verdict(patterns, "a/gen", is_folder=True)
    assert verdict(patterns, "a/gen", is_folder=False) is None


PATTERNS = (
    *("gen", "gen/", "/gen", "*.py", "!x.py", "a/", "/a", "/*", "!/src", "src/*", "!src/a/", "**/b", "a/**"),
    *("!*.gen.py", "b/x.py", "# c", "*", "!*/", "!y.py", "[xy].py", "[!x].py", "a b.py", "a/*/x.py", "?.py"),
    *("x.py ", "foo\\", "[z-a].py", "src/**/x.py", "**/gen/**", "[[:alpha:]].py", "a**", "/**", "src//x.py"),
)
FILES = ("x.py", "y.py", "z.gen.py", "a b.py", "q.py")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", range(8))
def test_a_repository_is_searched_as_git_searches_it(tmp_path, monkeypatch, seed):
    chance = random.Random(seed)
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    folders = [tmp_path]
    for _ in range(8):
        folders.append(chance.choice(folders) / chance.choice(["a", "b", "gen", "src"]))
        folders[-1].mkdir(exist_ok=True)
    for folder in set(folders):
        for name in FILES:
            (folder / name).touch()
        if chance.random() < 0.6:
            lines = chance.sample(PATTERNS, chance.randint(1, 5))
            (folder / ".gitignore").write_text("\n".join(lines))
    (tmp_path / ".git/info/exclude").write_text(chance.choice(PATTERNS))
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert names(".") == sorted(name for name in listed.stdout.split("\0") if name.endswith(".py"))
