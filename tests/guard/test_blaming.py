"""Blame: any part of a change can be put on its base, and the smallest part that is worse is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from representative import every

from pyrometer.guard.blaming import Search, smallest_failing
from pyrometer.guard.gate import Gate, Revision
from pyrometer.guard.hunks import apply_hunks, changes_code, hunks_between
from pyrometer.guard.revisions import worktrees


@given(st.integers(1, 30), st.data())
def test_the_smallest_part_is_found_whatever_is_to_blame(size, data):
    guilty = data.draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=3))
    assert smallest_failing(range(size), guilty.issubset) == sorted(guilty)


def test_parts_that_do_not_run_leave_the_rest_to_be_tried():
    def fails(part):
        runs = 3 not in part or 2 in part  # the third hunk calls what the second defines
        return runs and 5 in part

    assert smallest_failing(range(8), fails) == [5]


def test_every_part_of_a_change_is_the_base_with_those_hunks(repo):
    old = "".join(f"line {number}\n" for number in range(20))
    base = repo.commit({"a.py": old, "gone.py": "x = 1\n"})
    new = (
        old.replace("line 3\n", "line three\nand more\n")
        .replace("line 10\n", "")
        .replace("line 17", "LINE 17")
    )
    repo.git("rm", "--quiet", "gone.py")
    head = repo.commit({"a.py": new, "made.py": "y = 2\n"})
    hunks = hunks_between(repo.root, base, head)
    assert [hunk.place for hunk in hunks] == ["a.py:4", "a.py:11", "a.py:18", "gone.py", "made.py"]
    with worktrees(repo.root, {"head": Revision(ref="HEAD", sha=head)}) as trees:
        tree = trees["head"]
        apply_hunks(repo.root, base, head, [hunks[0], hunks[2], hunks[4]], tree)
        assert (tree / "a.py").read_text() == old.replace("line 3\n", "line three\nand more\n").replace(
            "line 17", "LINE 17"
        )
        assert (tree / "gone.py").exists()
        assert (tree / "made.py").read_text() == "y = 2\n"
        apply_hunks(repo.root, base, head, hunks, tree)
        assert (tree / "a.py").read_text() == new
        assert not (tree / "gone.py").exists()
        apply_hunks(repo.root, base, head, [], tree)
        assert (tree / "a.py").read_text() == old
        assert not (tree / "made.py").exists()


def gate(**fields):
    plain = {"benchmark": "b", "metric": "median_s", "kind": "time", "outcome": "regressed"}
    return Gate(**{**plain, **fields})


def timed(ratio, low, high):
    return gate(ratio=ratio, ci_low=low, ci_high=high, base=1.0, head=ratio)


def counted(base, head):
    ratio = head / base if base else None
    plain = {"metric": "copies", "kind": "counter", "ratio": ratio, "ci_low": ratio, "ci_high": ratio}
    return gate(base=base, head=head, **plain)


@pytest.mark.parametrize(
    ("whole", "part", "trial"),
    [
        (timed(1.21, 1.15, 1.27), timed(1.20, 1.15, 1.25), "worse"),
        (timed(1.21, 1.15, 1.27), timed(1.04, 1.02, 1.06), "fine"),  # proved slower, and not the one to blame
        (timed(1.21, 1.15, 1.27), timed(1.10, 1.02, 1.20), "unknown"),
        (timed(1.21, 1.15, 1.27), timed(1.10, None, None), "unknown"),  # fewer than two pairs
        (timed(0.8, 0.75, 0.85), timed(0.82, 0.77, 0.87), "worse"),  # a throughput
        (counted(0, 3), counted(0, 3), "worse"),
        (counted(0, 3), counted(0, 1), "fine"),
        (counted(40, 44), counted(40, 43), "worse"),
        (counted(40, 44), counted(40, 0), "fine"),
        (gate(kind="accuracy", base=0.0, head=0.2), gate(kind="accuracy", base=0.0, head=0.0), "fine"),
    ],
)
def test_a_part_is_worse_that_brings_more_than_half_of_the_effect(whole, part, trial):
    assert Search(None, whole).read(part) == trial


def test_hunks_that_change_no_code_are_not_tried(repo):
    old = "'''Module.'''\nx = 1\n\n\n\n\ndef f():\n    '''F.'''\n    return 2\n\n\n\ny = 3\n"
    base = repo.commit({"a.py": old, "b.txt": "one\n"})
    new = old.replace("Module", "The module").replace("x = 1", "x = 1  # one").replace("F.", "Two.")
    head = repo.commit({"a.py": new.replace("y = 3", "y = 4"), "b.txt": "two\n"})
    hunks = hunks_between(repo.root, base, head)
    kept = [hunk.place for hunk in hunks if changes_code(repo.root, base, hunk)]
    assert len(hunks) == 4
    assert kept == ["a.py:13", "b.txt:1"]


@pytest.mark.slow
def test_the_hunk_that_copies_is_named_among_harmless_ones(repo, call):
    model = (repo.root / "model.py").read_text()
    head = model.replace("self.b(torch.relu(self.a(x)))", "self.b(torch.relu(self.a(x)).clone())")
    repo.git("branch", "before")
    repo.commit(
        {"model.py": head.replace("import torch\n", "import torch  # as ever\n", 1), "notes.txt": "x"}
    )
    done = call(repo.root, "guard", "blame", "--base", "before", "--budget", "1ms")
    assert done.returncode == 1, done.stderr
    assert "1 hunk of 3" in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[1].strip() == "model.py:13"
    assert ".clone()" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("earlier", every(2, [[], ["harmless"]]))
def test_bisect_names_the_commit_that_copies(repo, call, earlier):
    """One before it that is good takes another two jobs, which are as those that found it."""
    good = repo.git("rev-parse", "HEAD")
    model = (repo.root / "model.py").read_text()
    copying = model.replace("torch.relu(self.a(x))", "torch.relu(self.a(x)).clone()")
    for name in earlier:
        repo.commit({"notes.txt": "a"}, name)
    guilty = repo.commit({"model.py": copying}, "copies")
    repo.commit({"notes.txt": "b"}, "harmless too")
    before = repo.state()
    done = call(repo.root, "guard", "bisect", "--good", good, "--budget", "1ms")
    assert done.stdout.split() == [guilty[:12], "copies"], done.stderr
    assert repo.state() == before
