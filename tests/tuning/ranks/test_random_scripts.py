"""A script whose losses differ from launch to launch is held to how far it is from itself."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.ranks.laboratory import RANDOM, RankLaboratory
from pyrometer.tuning.trials.gate import CaseError, Limits
from pyrometer.tuning.trials.laboratory import OpenConfiguration
from pyrometer.tuning.trials.protocol import Checked, Save, Source

LOSSES, GRADIENTS = "losses of 12 steps", "gradients of the first step"


def launch(*configuration, off=0.0, mismatch=None):
    """A launch whose losses are that far from the reference."""
    cases = [
        CaseError(label=LOSSES, max_rel=off, mismatch=mismatch),
        CaseError(label=GRADIENTS, cosine=0.5),
    ]

    def ask(request, kind, *, timeout_s):
        return kind() if isinstance(request, Save) else Checked(cases=cases)

    worker = SimpleNamespace(ask=ask)
    return OpenConfiguration(configuration, worker, None, 1.0, contextlib.ExitStack())


@pytest.fixture
def laboratory(tmp_path, monkeypatch):
    """Two launches of the script as it is are 10 % apart."""
    lab = RankLaboratory(Source(), tmp_path, Limits())
    monkeypatch.setattr(lab, "open", lambda _: launch(off=0.1))
    lab.keep_reference(launch())
    return lab


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"off": 0.2}, None),
        (
            {"off": 3.0},
            "losses of 12 steps: off by 3.0e+00 of the largest value, where it is off by 1.0e-01 from itself",
        ),
        (
            {"mismatch": "NaN where the reference has none"},
            "losses of 12 steps: NaN where the reference has none",
        ),
    ],
    ids=["as far", "far off", "NaN"],
)
def test_what_is_no_farther_than_another_launch_passes_unchecked(laboratory, changed, refused):
    numerics = laboratory.check(launch(LeverChoice(lever="ddp_buckets"), **changed))
    assert numerics.refused == refused
    assert {case.skipped for case in numerics.cases} == {RANDOM}
