"""The exit code of a search, or of a proof, by what became of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyrometer.cli.tune import _exit_code


def ended(*, outcome="faster", path="a.recipe.toml", refused=None, met=(), interrupted=False):
    return SimpleNamespace(
        interrupted=interrupted,
        recipe=SimpleNamespace(levers=["channels_last"], path=path),
        numerics=SimpleNamespace(refused=refused),
        final=SimpleNamespace(outcome=outcome),
        targets=[SimpleNamespace(met=each) for each in met],
    )


@pytest.mark.parametrize(
    ("tuning", "code"),
    [
        (ended(), 0),
        (ended(met=(True,)), 0),
        (ended(met=(True, False)), 1),
        (ended(outcome="slower"), 1),
        (ended(refused="as given: off"), 1),
        (ended(path=None), 2),
        (ended(outcome="undecided"), 3),
        (ended(interrupted=True), 130),
    ],
)
def test_it_tells_what_became_of_it(tuning, code):
    assert _exit_code(tuning) == code
