"""Traces of the host in which other work on the machine held a program up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyrometer.trace.difference.compare import diff_traces
from pyrometer.trace.difference.pauses import find_pauses
from pyrometer.trace.trace import RankTrace

STEPS, OPERATORS, SLICE_US = 12, 20, 4000.0
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
Record = Callable[..., RankTrace]


@pytest.fixture
def record(new_builder, tmp_path) -> Record:
    """Twelve steps of twenty operators, after a wait for the loader if there is one."""

    def write(
        name: str, operator_us: Callable[[int, int], float], wait_us: Callable[[int], float] | None = None
    ):
        builder, now = new_builder(tmp_path), 0.0
        for step in range(STEPS):
            start = now
            if wait_us is not None:
                builder.annotate(LOADER, now + 1, wait_us(step))
                now += wait_us(step) + 1
            for nth in range(OPERATORS):
                builder.op("aten::addmm", now + 10, operator_us(step, nth))
                now += operator_us(step, nth) + 10
            builder.annotate(f"ProfilerStep#{step}", start, now - start)
            now += 1
        return builder.read(name)

    return write


@pytest.fixture
def sound(record) -> RankTrace:
    return record("sound.json", lambda step, _: 120 + step)


def paused(step: int, nth: int) -> float:
    """Every step is held up once, never in the same place as the step before."""
    return 120 + step + (SLICE_US if nth == step * 7 % OPERATORS else 0)


def test_what_steps_are_held_up_by_is_found_where_others_are_not(record, sound):
    assert not find_pauses(sound).any()
    pauses = find_pauses(record("b.json", paused))
    assert pauses == pytest.approx([SLICE_US * 1000] * STEPS, rel=0.01)


def test_pauses_alone_make_no_side_slower(record, sound):
    diff = diff_traces(sound, record("b.json", paused))
    assert diff.step.ci_low > 1.5
    assert diff.outcome == "undecided"
    assert "other work has the processor" in diff.sentence
    assert "pyrometer bench A --vs B" in diff.sentence


def test_a_side_that_stood_still_for_long_is_not_called_slower(record, sound):
    """A scheduler that holds a step up twice, once always in the same place, which looks like a slow operator."""
    held = record("b.json", lambda step, nth: paused(step, nth) + (SLICE_US if nth == 3 else 0))
    diff = diff_traces(sound, held)
    assert diff.outcome == "undecided"
    assert "the slower side stood still for " in diff.sentence


def test_what_pauses_cannot_explain_is_slower_all_the_same(record, sound):
    slower = record("b.json", lambda step, nth: paused(step, nth) + (6 * SLICE_US if nth == 3 else 0))
    assert diff_traces(sound, slower).outcome == "slower"


def test_an_operator_that_takes_longer_in_every_step_is_no_pause(record, sound):
    slower = record("b.json", lambda step, nth: 120 + step + (SLICE_US if nth == 3 else 0))
    assert not find_pauses(slower).any()
    assert diff_traces(sound, slower).outcome == "slower"


def test_waits_for_a_loader_in_bursts_are_no_pauses(record):
    a = record("a.json", lambda *_: 120.0, lambda _: 100.0)
    b = record("b.json", lambda *_: 120.0, lambda step: 100.0 if step % 3 else 30_000.0)
    assert not find_pauses(b).any()
    assert diff_traces(a, b).outcome == "slower"
