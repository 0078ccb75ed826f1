"""`pyrometer guard bisect`: the first commit that made something worse, by `git bisect run` with the paired test.

It runs in a worktree of its own, so that the user's stays as it is. A commit whose counters regressed is bad without a pair; one that
cannot be decided is skipped.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pyrometer.errors import InputError
from pyrometer.guard.gate import Revision
from pyrometer.guard.revisions import GitError, base_revision, git, head_revision, repository, worktrees
from pyrometer.record import Record, doc

_CHECK = (sys.executable, "-m", "pyrometer", "guard", "check", "--no-store", "--fail-fast", "--base")
_STEP = 'code=0; {command} >&2 || code=$?; case "$code" in 0|1|13[0-9]) exit "$code";; *) exit 125;; esac'
"""0 is good, 1 is bad; whatever decides nothing is skipped; an interrupt ends it."""


class Bisection(Record, frozen=True, kw_only=True):
    """The first commit that is worse than the good one."""

    sha: str
    subject: str
    good: Revision
    bad: Revision
    log: Annotated[list[str], doc("what git bisect decided, commit by commit")] = []


def bisect(folder: Path, good: str, bad: str | None, check_flags: Sequence[str] = ()) -> Bisection:
    """Find the first commit after `good` that `guard check` calls worse.

    Args:
        folder: in a git repository.
        good: a commit before it became worse, which every other is compared with.
        bad: one after it; by default the commit that is checked out.
        check_flags: of `pyrometer guard check`, such as `-k forward`.

    Raises:
        InputError: a commit that is not there, no commits between them, or too many that cannot be decided.
    """
    root = repository(folder)
    after, _ = head_revision(root, bad or "HEAD")
    before, _ = base_revision(root, good, after.sha)
    if before.sha == after.sha:
        raise InputError(f"bisect: {good} and {after.ref} are the same commit; name an earlier one as --good")
    check = shlex.join([*_CHECK, before.sha, *check_flags])
    with worktrees(root, {"bisect": after}) as trees:
        tree = trees["bisect"]
        git(tree, "bisect", "start", after.sha, before.sha)
        try:
            step = ["git", "bisect", "run", "sh", "-c", _STEP.format(command=check)]
            subprocess.run(step, cwd=tree, stdout=sys.stderr, check=False)  # noqa: S603 - git and ourselves
            log = [line for line in git(tree, "bisect", "log").splitlines() if line.startswith("# ")]
            if not any("first bad commit" in line for line in log):
                skipped = [line for line in log if "possible first bad" in line or "skip" in line]
                raise InputError(
                    f"bisect: no first commit was found, {len(skipped)} could not be decided; "
                    "run it on a quieter machine, or with -k for fewer benchmarks"
                )
            sha = git(tree, "rev-parse", "refs/bisect/bad")
            subject = git(root, "show", "--no-patch", "--format=%s", sha)
            return Bisection(sha=sha, subject=subject, good=before, bad=after, log=log)
        finally:
            _reset(tree)


def _reset(tree: Path) -> None:
    try:
        git(tree, "bisect", "reset", "HEAD")
    except GitError:
        return  # it never began
