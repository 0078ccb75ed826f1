"""Monitors that write nowhere unless a test says so, and end with it."""

from __future__ import annotations

import pytest

from pyrometer.monitor.monitor import Monitor


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes monitors whose thread drains but ticks only when a test says `flush`."""
    monkeypatch.chdir(tmp_path)
    made = []

    def monitor(**settings):
        one = Monitor(**{"folder": "", "tick_s": 3600, **settings})
        made.append(one)
        return one

    yield monitor
    for one in made:
        one.close()


@pytest.fixture
def monitor(make):
    return make(model="perception")
