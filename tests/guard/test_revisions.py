"""Commits and their trees: found or refused in a line, and nothing of the user's changes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pyrometer.errors import InputError
from pyrometer.guard.gate import Revision
from pyrometer.guard.revisions import (
    PREFIX,
    base_revision,
    files_of,
    head_revision,
    repository,
    sweep,
    worktrees,
)


def test_the_base_is_the_commit_where_the_head_left_it(repo):
    fork = repo.git("rev-parse", "HEAD")
    repo.git("switch", "--quiet", "--create", "work")
    head = repo.commit({"a.py": "x = 1\n"})
    repo.git("switch", "--quiet", "main")
    repo.commit({"b.py": "y = 1\n"})
    base, notes = base_revision(repo.root, "main", head)
    assert base == Revision(ref="main", sha=fork)
    assert "main went on since" in notes[0]


def test_changes_that_are_not_committed_are_judged_and_stay_as_they_are(repo):
    repo.write(
        {"model.py": "changed = True\n", "perf_new.py": "def perf_x(): pass\n", "data.bin": "0" * 1000}
    )
    before = repo.state()
    head, notes = head_revision(repo.root, None)
    assert head.dirty
    assert notes == ["head: with 2 files not committed yet"]
    assert "perf_new.py" in files_of(repo.root, head)
    assert "data.bin" not in files_of(repo.root, head), "data may be large, and is not the program"
    with worktrees(repo.root, {"head": head}) as trees:
        assert (trees["head"] / "model.py").read_text() == "changed = True\n"
    assert repo.state() == before


def test_a_clean_tree_is_its_commit(repo):
    head, notes = head_revision(repo.root, None)
    assert (head.sha, head.dirty, notes) == (repo.git("rev-parse", "HEAD"), False, [])


def test_a_detached_head_is_a_head(repo):
    repo.commit({"a.py": ""})
    repo.git("switch", "--quiet", "--detach", "HEAD")
    head, _ = head_revision(repo.root, None)
    base, _ = base_revision(repo.root, "main", head.sha)
    assert base.sha == head.sha


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("nowhere", r"base: nowhere is not a commit of this repository; git branch -a"),
        ("--upload-pack=x", "is not a commit; name a branch"),
    ],
)
def test_a_base_that_is_not_there_is_refused_in_a_line(repo, ref, said):
    with pytest.raises(InputError, match=said):
        base_revision(repo.root, ref, "HEAD")


def test_a_shallow_clone_is_told_how_to_get_the_base(repo, new_repository, tmp_path):
    repo.git("tag", "v1")
    repo.commit({"a.py": ""})
    subprocess.run(
        [
            "git",
            "clone",
            "--quiet",
            "--depth",
            "1",
            "--no-tags",
            f"file://{repo.root}",
            str(tmp_path / "shallow"),
        ],
        check=True,
    )
    with pytest.raises(
        InputError, match=r"base: v1 is not in this clone, which is shallow; fetch it: git fetch"
    ):
        base_revision(tmp_path / "shallow", "v1", "HEAD")


def test_a_folder_outside_of_any_repository_is_refused(tmp_path):
    with pytest.raises(InputError, match="not in a git repository"):
        repository(tmp_path)


def test_submodules_that_are_checked_out_are_part_of_the_trees(repo, new_repository):
    library = new_repository("library")
    library.commit({"part.py": "old = True\n"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "library")
    repo.commit({})
    base = repo.git("rev-parse", "HEAD")
    (repo.root / "library" / "part.py").write_text("new = True\n")
    own = repo.root / "library"
    for command in ("config user.name t", "config user.email t@t", "commit -qam new"):
        subprocess.run(["git", "-C", str(own), *command.split()], check=True)
    head = repo.commit({})
    revisions = {side: Revision(ref=side, sha=sha) for side, sha in (("base", base), ("head", head))}
    with worktrees(repo.root, revisions) as trees:
        assert "old" in (trees["base"] / "library" / "part.py").read_text()
        assert "new" in (trees["head"] / "library" / "part.py").read_text()
    listed = subprocess.run(
        ["git", "-C", str(own), "worktree", "list"], capture_output=True, text=True, check=True
    )
    assert listed.stdout.count("\n") == 1


def test_no_hook_of_the_repository_runs(repo):
    hook = repo.root / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {repo.root}/ran\n")
    hook.chmod(0o755)
    with worktrees(repo.root, {"base": Revision(ref="HEAD", sha=repo.git("rev-parse", "HEAD"))}):
        pass
    assert not (repo.root / "ran").exists()


def test_what_a_killed_job_left_behind_is_removed_by_the_next(repo, tmp_path):
    before = repo.state()
    folder = tmp_path / f"{PREFIX}killed"
    folder.mkdir()
    ended = subprocess.Popen(["true"])
    ended.wait()
    (folder / "owner").write_text(str(ended.pid))
    repo.git("worktree", "add", "--quiet", "--detach", str(folder / "base"))
    assert sweep(repo.root) == 1
    assert not folder.exists()
    assert repo.state() == before


def test_the_trees_of_a_job_that_still_runs_are_left_alone(repo, tmp_path):
    folder = tmp_path / f"{PREFIX}running"
    folder.mkdir()
    (folder / "owner").write_text(str(os.getpid()))
    repo.git("worktree", "add", "--quiet", "--detach", str(folder / "base"))
    assert sweep(repo.root) == 0
    assert (folder / "base" / "model.py").exists()
    shutil.rmtree(folder)


def interrupted(root, revision):
    """The tree of a job that Ctrl-C ends."""
    with worktrees(root, {"base": revision}) as trees:
        (root / "seen").write_text(str(trees["base"]))
        raise KeyboardInterrupt


def test_trees_are_gone_also_after_an_error(repo):
    revision = Revision(ref="HEAD", sha=repo.git("rev-parse", "HEAD"))
    (repo.root / ".git" / "info" / "exclude").write_text("seen\n")
    before = repo.state()
    with pytest.raises(KeyboardInterrupt):
        interrupted(repo.root, revision)
    assert not Path((repo.root / "seen").read_text()).exists()
    assert repo.state() == before
