from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyrometer.store.commit import read_commit


def _git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    _git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("1")
    _git(tmp_path, "add", "a.py")
    _git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_the_commit_of_a_clean_repository(repository: Path):
    (repository / "untracked.txt").write_text("x")
    assert read_commit(repository) == (_git(repository, "rev-parse", "HEAD"), False)


def test_a_changed_file_makes_it_dirty_and_the_index_is_left_alone(repository: Path):
    (repository / "a.py").write_text("2")
    index = (repository / ".git" / "index").read_bytes()
    assert read_commit(repository) == (_git(repository, "rev-parse", "HEAD"), True)
    assert (repository / ".git" / "index").read_bytes() == index


def test_no_repository_no_commit_and_no_folder_are_ordinary(tmp_path: Path):
    assert read_commit(tmp_path / "missing") == (None, None)
    assert read_commit(tmp_path) == (None, None)
    _git(tmp_path, "init", "-q")
    assert read_commit(tmp_path) == (None, None)


def test_without_git_there_is_no_commit(repository: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(repository))
    assert read_commit(repository) == (None, None)


def test_a_git_that_hangs_is_given_up(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(3600)\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert read_commit(repository) == (None, None)
