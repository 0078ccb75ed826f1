from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.rules.patterns import path_matches, relative_to


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("old", ["old", "old/a.py", "src/old/a.py"], ["older/a.py", "src/bold/a.py"]),
        ("old/", ["old/a.py", "src/old/a.py"], ["older/a.py"]),
        ("src/old", ["src/old/a.py"], ["old/a.py", "lib/src/old/a.py"]),
        ("*.ipynb", ["a.ipynb", "b/a.ipynb"], ["a.ipynb.py"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py", "a.py"]),
        ("src/**/*.py", ["src/a.py", "src/b/c/a.py"], ["a.py"]),
        ("tests/**", ["tests/a.py", "tests/b/a.py"], ["src/tests.py"]),
        ("**/test_*.py", ["test_a.py", "b/test_a.py"], ["b/a_test.py"]),
        ("test_?.py", ["test_a.py"], ["test_ab.py"]),
        ("gen_[0-9].py", ["gen_1.py"], ["gen_a.py"]),
        ("gen_[!0-9].py", ["gen_a.py"], ["gen_1.py"]),
        ("a+b(c).py", ["a+b(c).py"], ["aab(c).py"]),
        ("./src/a.py", ["src/a.py"], ["a.py"]),
        ("/abs/old", ["/abs/old/a.py"], ["abs/old/a.py"]),
        ("[x", ["[x"], ["x"]),
    ],
)
def test_patterns_fit_paths_and_what_lies_below(pattern: str, fits: list[str], fits_not: list[str]):
    assert [path for path in fits if not path_matches(path, [pattern])] == []
    assert [path for path in fits_not if path_matches(path, [pattern])] == []


@given(st.text("ab*?[]!/\\.^-", max_size=8), st.text("ab/.-]", max_size=8))
def test_any_text_is_a_pattern(pattern: str, path: str):
    try:
        path_matches(path, [pattern])
    except re.error:
        pytest.fail(f"{pattern!r} is no pattern")


@given(st.from_regex(r"[a-z_]{1,5}(/[a-z_]{1,5}){0,3}", fullmatch=True))
def test_a_path_is_a_pattern_of_itself(path: str):
    assert path_matches(path, [path])


def test_paths_count_from_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert relative_to(Path("a/b.py"), tmp_path) == "a/b.py"
    assert relative_to(Path("/elsewhere/b.py"), tmp_path) == "/elsewhere/b.py"
