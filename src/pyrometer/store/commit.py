"""Which commit of the user's repository a run was taken at."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_TIMEOUT_S = 2.0


def read_commit(folder: Path) -> tuple[str | None, bool | None]:
    """The commit that is checked out in `folder`, and whether tracked files differ from it.

    Either is `None` where there is no repository, no commit yet, no git, or no answer within two seconds.
    """
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None, None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return commit, None if changes is None else bool(changes)


def short_commit(sha: str | None, dirty: bool | None) -> str:
    """A commit as people abbreviate it; `+` stands for changes on top of it; empty where there is none.

    >>> short_commit("0123456789abcdef", True), short_commit(None, None)
    ('012345678+', '')
    """
    return f"{(sha or '')[:9]}{'+' if sha and dirty else ''}"


def _git(folder: Path, *arguments: str) -> str | None:
    # No optional locks: `git status` would otherwise refresh the user's index. No file-system monitor: it is a
    # program that the repository's own settings name.
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command, no shell
            command, env=environ, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None  # no commit is an answer: a run outside a repository is an ordinary run
    return done.stdout.strip()
