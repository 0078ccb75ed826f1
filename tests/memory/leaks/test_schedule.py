"""When windows open, by an injected clock."""

from __future__ import annotations

import pytest

from pyrometer.errors import InputError
from pyrometer.memory.leaks.schedule import Schedule


class Loop:
    """Steps of ten milliseconds, in a window of twenty; a window's scans take a hundred."""

    def __init__(self, every=None, window=20, max_overhead=0.03):
        self.now = 0.0
        self.schedule = Schedule(every, window, max_overhead, lambda: self.now)
        self.opened = []

    def run(self, steps):
        schedule = self.schedule
        schedule.start()
        if schedule.opens_at_once:
            self.opened.append(0)
            schedule.opened()
        for _ in range(steps):
            self.now += 0.02 if schedule.is_open else 0.01
            schedule.step_ends()
            if schedule.closes():
                self.now += 0.05
                schedule.closed()
            elif schedule.opens():
                self.now += 0.05
                self.opened.append(schedule.steps)
                schedule.opened()
            schedule.step_begins()
        return self


def test_windows_are_as_far_apart_as_their_cost_demands():
    loop = Loop().run(20_000)
    gaps = [after - before for before, after in zip(loop.opened[2:], loop.opened[3:], strict=False)]
    assert loop.schedule.overhead_share <= 0.031
    # 0.2 s for twenty slow steps and 0.1 s for scans, at three per cent of ten milliseconds
    assert all(900 <= gap <= 1100 for gap in gaps)


def test_the_first_sixty_steps_are_watched_one_and_all():
    loop = Loop().run(60)
    assert loop.opened == [0]
    assert loop.schedule.whole
    assert not loop.schedule.is_open
    assert not Loop().run(61).schedule.whole
    assert Loop(window=80).run(80).schedule.whole


def test_a_given_distance_is_kept():
    assert Loop(every=100).run(400).opened == [3, 103, 203, 303]


def test_a_larger_share_looks_more_often():
    assert len(Loop(max_overhead=0.3).run(2000).opened) > 4 * len(Loop(max_overhead=0.03).run(2000).opened)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "window: got 0"),
        ({"every": 5}, "every: got 5 steps for windows of 20"),
        ({"max_overhead": 0}, "max_overhead: got 0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Loop(**settings)
