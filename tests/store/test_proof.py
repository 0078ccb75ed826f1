"""The command that would give a verdict between two runs compares two different things, or there is none."""

from __future__ import annotations

import pytest

from pyrometer.store.comparison import compare_runs

ADD = "git worktree add"
OLD, NEW = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("before", "after", "command"),
    [
        ((OLD, False), (OLD, False), None),
        ((OLD, True), (OLD, False), None),
        (
            (OLD, False),
            (OLD, True),
            f"{ADD} ../before {OLD[:12]} && pyrometer bench ../before/model.py:work --vs model.py:work",
        ),
        (
            (OLD, False),
            (NEW, False),
            f"{ADD} ../before {OLD[:12]} && {ADD} ../after {NEW[:12]} && pyrometer bench ../before/model.py:work --vs ../after/model.py:work",
        ),
    ],
)
def test_the_command_runs_the_code_of_both_in_turns(measured, before, after, command):
    a, b = measured.measured_run(0.002, commit=before, age_s=60), measured.measured_run(0.001, commit=after)
    assert compare_runs(a, b).prove_with == command
