"""A goal that is missed says what the hardware leaves, unless nobody wants to wait for that."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyrometer.tuning.search import goals
from pyrometer.tuning.search.confirming import Confirmation
from pyrometer.tuning.search.settings import TuneSettings
from pyrometer.tuning.trials.protocol import Source


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("remaining", "left"), [(lambda *_: "nothing", "nothing"), (interrupted, "")])
def test_an_interruption_then_loses_nothing_else(monkeypatch, remaining, left):
    monkeypatch.setattr(goals, "remaining", remaining)
    base = SimpleNamespace(measurement=SimpleNamespace(median_s=0.02), peak_bytes=None)
    settings = TuneSettings(latency_s=0.01)
    (goal,) = goals.goals_of(Source(pickled="work.pickle"), settings, base, Confirmation(()), 5.0)
    assert (goal.met, goal.left) == (False, left)
