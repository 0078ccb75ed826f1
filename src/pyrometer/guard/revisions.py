"""The two commits of a comparison, and a tree of each to run: worktrees that are gone at the end, also after a kill.

The user's working tree, index and branches stay as they are. What is not committed becomes a commit that no branch
holds, which git drops in time.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from pyrometer.errors import InputError
from pyrometer.guard.gate import Revision
from pyrometer.quantity import counted

PREFIX = "pyrometer-guard-"
_OWNER = "owner"
_NEW_FILES = ("*.py", "*.toml", "*.cfg", "requirements*.txt")
"""Of files that git does not know yet those that are part of a program; data may be large."""

_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")
_AUTHOR = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "pyrometer"), ("EMAIL", "pyrometer@localhost"))
}


class GitError(InputError):
    """Git refused; the message is its own."""


def git(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Ask git in a folder; no hook and no file-system monitor runs.

    Raises:
        GitError: it failed, or there is no git.
    """
    command = ["git", *_QUIET, "-C", str(folder), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command, no shell
            command,
            env={**_without_git(os.environ), **(environment or {})},
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
    except OSError as error:
        raise GitError(f"git cannot be run ({error.strerror}); the guard needs git") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise GitError(f"git {arguments[0]}: {said[-1]}")
    return done.stdout.rstrip("\n")


def _without_git(environ: Mapping[str, str]) -> dict[str, str]:
    """Without what a hook of git sets, which would lead every command to the repository that the hook is of."""
    return {name: value for name, value in environ.items() if not name.startswith("GIT_")}


def repository(folder: Path) -> Path:
    """The top of the working tree that a folder lies in.

    Raises:
        InputError: it lies in none.
    """
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel"))
    except GitError as error:
        raise InputError(
            f"{folder}: not in a git repository, and the guard compares two commits ({error})"
        ) from None


def base_revision(root: Path, ref: str, head: str) -> tuple[Revision, list[str]]:
    """The commit where head left `ref`, which is what a change is compared with, and what to say of it.

    Raises:
        InputError: there is no such commit here; says how to get it.
    """
    sha = _resolved(root, "base", ref)
    try:
        fork = git(root, "merge-base", sha, head)
    except GitError:
        note = f"base: {ref} and the head have no common commit in this clone; the tip of {ref} is compared"
        return Revision(ref=ref, sha=sha), [note]
    if fork == sha:
        return Revision(ref=ref, sha=sha), []
    note = f"base: {ref} went on since; the commit where the head left it is compared ({fork[:9]})"
    return Revision(ref=ref, sha=fork), [note]


def head_revision(root: Path, ref: str | None) -> tuple[Revision, list[str]]:
    """The commit to judge; by default what is checked out, with changes that are not committed.

    Raises:
        InputError: there is no such commit, or no commit at all.
    """
    if ref is not None:
        return Revision(ref=ref, sha=_resolved(root, "head", ref)), []
    sha = _resolved(root, "head", "HEAD")
    new = git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", *_NEW_FILES).split("\0")
    changed = git(root, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=untracked")
    new = [name for name in new if name]
    if not changed and not new:
        return Revision(ref="HEAD", sha=sha), []
    count = len(changed.splitlines()) + len(new)
    note = f"head: with {counted(count, 'file')} not committed yet"
    return Revision(ref="HEAD", sha=_snapshot(root, sha, new), dirty=True), [note]


def _snapshot(root: Path, parent: str, new: list[str]) -> str:
    """The working tree as a commit; the user's index is read and left alone."""
    index = Path(git(root, "rev-parse", "--git-path", "index"))
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        own = {"GIT_INDEX_FILE": str(Path(folder) / "index"), **_AUTHOR}
        with contextlib.suppress(FileNotFoundError):  # nothing was ever added
            shutil.copy(root / index, own["GIT_INDEX_FILE"])
        git(root, "add", "--update", environment=own)
        for name in new:
            git(root, "add", "--", name, environment=own)
        tree = git(root, "write-tree", environment=own)
        return git(root, "commit-tree", tree, "-p", parent, "-m", "not committed", environment=own)


def _resolved(root: Path, side: str, ref: str) -> str:
    if ref.startswith("-"):
        raise InputError(f"{side}: {ref!r} is not a commit; name a branch, a tag or a commit")
    try:
        return git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    except GitError:
        shallow = git(root, "rev-parse", "--is-shallow-repository") == "true"
        what = "is not in this clone, which is shallow" if shallow else "is not a commit of this repository"
        how = f"fetch it: git fetch --unshallow origin, or git fetch --depth=1 origin {ref}"
        other = "git branch -a and git tag list what there is; git fetch brings the rest"
        raise InputError(f"{side}: {ref} {what}; {how if shallow else other}") from None


def files_of(root: Path, revision: Revision) -> list[str]:
    """All files of a commit, by their paths in it."""
    return [
        name for name in git(root, "ls-tree", "-r", "-z", "--name-only", revision.sha).split("\0") if name
    ]


@contextlib.contextmanager
def worktrees(root: Path, revisions: Mapping[str, Revision]) -> Iterator[dict[str, Path]]:
    """A tree of each commit, in a folder that is removed at the end; what killed jobs left behind is removed first.

    Raises:
        InputError: a tree cannot be checked out.
    """
    sweep(root)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    (folder / _OWNER).write_text(str(os.getpid()), encoding="utf-8")
    made: list[tuple[Path, Path]] = []
    try:
        trees: dict[str, Path] = {}
        for side, revision in revisions.items():
            trees[side] = folder / side
            _check_out(root, trees[side], revision.sha, side, made)
        yield trees
    finally:
        for repository_root, tree in reversed(made):
            _remove(repository_root, tree)
        shutil.rmtree(folder, ignore_errors=True)


def _check_out(root: Path, tree: Path, sha: str, side: str, made: list[tuple[Path, Path]]) -> None:
    """A worktree, and one of each submodule that is checked out in the original; no network is asked."""
    made.append((root, tree))
    try:
        git(root, "worktree", "add", "--detach", "--force", str(tree), sha)
    except GitError as error:
        raise InputError(
            f"{side}: commit {sha[:9]} cannot be checked out: {error}; free some disk or mend the repository"
        ) from error
    for line in git(tree, "ls-files", "--stage").splitlines():
        mode, pinned, _, path = line.replace("\t", " ", 1).split(" ", 3)
        original = root / path
        if mode == "160000" and (original / ".git").exists():
            try:
                git(original, "cat-file", "-e", f"{pinned}^{{commit}}")
            except GitError:
                raise InputError(
                    f"{side}: submodule {path} needs {pinned[:9]}, which is not here; "
                    f"fetch it: git -C {path} fetch origin {pinned}"
                ) from None
            (tree / path).rmdir()
            _check_out(original, tree / path, pinned, side, made)


def _remove(root: Path, tree: Path) -> None:
    with contextlib.suppress(GitError):  # was never made
        git(root, "worktree", "remove", "--force", "--force", str(tree))
    shutil.rmtree(tree, ignore_errors=True)
    with contextlib.suppress(GitError):
        git(root, "worktree", "prune")


def sweep(root: Path) -> int:
    """Remove the worktrees of jobs that were killed; how many there were."""
    num_removed = 0
    for line in git(root, "worktree", "list", "--porcelain").splitlines():
        tree = Path(line.removeprefix("worktree "))
        folder = tree.parent
        if not line.startswith("worktree ") or not folder.name.startswith(PREFIX) or _is_owned(folder):
            continue
        _remove(root, tree)
        shutil.rmtree(folder, ignore_errors=True)
        num_removed += 1
    return num_removed


def _is_owned(folder: Path) -> bool:
    """Whether the process that made a folder still runs."""
    try:
        return psutil.pid_exists(int((folder / _OWNER).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False
