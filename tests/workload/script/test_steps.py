"""Steps found in real training loops, and in any log that a script could leave behind."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.workload.script.cycles import closings, cycle_length
from pyrometer.workload.script.events import Events
from pyrometer.workload.script.startup._pyrometer_inside import kinds
from pyrometer.workload.script.steps import UNKNOWN, Steps, evaluation_ns, find_steps

from .conftest import make_log

FWD, BWD, DATA, OPT = kinds.FORWARD_BEGIN, kinds.BACKWARD_BEGIN, kinds.DATA_BEGIN, kinds.OPTIMIZER_BEGIN


def assert_adds_up(steps: Steps) -> None:
    parts = np.stack(list(steps.phase_ns.values()))
    assert (parts >= 0).all()
    np.testing.assert_array_equal(parts.sum(axis=0), steps.duration_ns)


@pytest.mark.parametrize(
    ("script", "steps_from", "num_steps", "irregular"),
    [
        ("train.py", "optimizer steps", 12, [0, 6]),
        ("accumulate.py", "optimizer steps", 10, [0, 5]),
        ("two_optimizers.py", "optimizer steps", 12, []),
        ("closure.py", "optimizer steps", 6, []),
        ("by_hand.py", "loader iterations", 20, [0, 10]),
        ("inference.py", "module calls", 20, []),
        ("imports_only.py", "nothing", 0, []),
    ],
)
def test_steps_of_real_loops(
    script: str, steps_from: str, num_steps: int, irregular: list[int], observe_here: Callable[[str], Events]
) -> None:
    steps = find_steps(observe_here(script))
    assert (steps.steps_from, len(steps)) == (steps_from, num_steps)
    assert np.flatnonzero(~steps.regular).tolist() == irregular
    assert_adds_up(steps)


def test_closure_time_is_not_the_optimizers(observe_here: Callable[[str], Events]) -> None:
    steps = find_steps(observe_here("closure.py"))
    for phase in ("forward", "backward", "optimizer"):
        assert (steps.phase_ns[phase] > 0).all()
    assert (steps.phase_ns["data"] == 0).all()


def test_validation_is_outside_of_the_steps() -> None:
    step = [(DATA, 1, 5), (FWD, 7, 10), (BWD, 0, 20), (OPT, 9, 5)]
    fresh = [(DATA, 1, 5, kinds.FIRST_FETCH), *step[1:]]
    over = [(DATA, 1, 1, 0, kinds.EXHAUSTED)]
    check = [
        (DATA, 2, 500, kinds.FIRST_FETCH),
        (FWD, 7, 1000, kinds.EVALUATION),
        (DATA, 2, 1, 0, kinds.EXHAUSTED),
    ]
    steps = find_steps(make_log([*fresh, *step * 4, *over, *check, *fresh, *step * 4, *over]))
    assert len(steps) == 10
    assert np.flatnonzero(~steps.regular).tolist() == [0, 5]
    # Each event is followed by a gap of 1; a regular step contains all of its four.
    assert steps.duration_ns.tolist() == [43, 44, 44, 44, 44] * 2


def test_validation_that_is_left_early_is_outside_of_the_steps() -> None:
    step = [(DATA, 1, 5), (FWD, 7, 10), (BWD, 0, 20), (OPT, 9, 5)]
    check = [(DATA, 2, 500, kinds.FIRST_FETCH), (FWD, 7, 1000, kinds.EVALUATION)]
    steps = find_steps(make_log([*step * 5, *check, *step * 5]))
    assert steps.duration_ns.tolist() == [43, 44, 44, 44, 44, 43, 44, 44, 44, 44]
    assert np.flatnonzero(~steps.regular).tolist() == [5]


def test_the_time_of_evaluations_between_the_steps_is_known() -> None:
    step = [(FWD, 7, 10), (BWD, 0, 20), (OPT, 9, 5)]
    check = [(FWD, 7, 400, kinds.EVALUATION)] * 2
    log = make_log([*check, *step * 4, *check, *step * 4, *check, *step * 4, *check])
    steps = find_steps(log)
    assert len(steps) == 12
    # Two lie between steps; what is before the first and after the last is no part of the loop.
    assert evaluation_ns(log, steps) == pytest.approx(2 * 802, rel=0.01)
    assert evaluation_ns(make_log(step * 12), find_steps(make_log(step * 12))) == 0


def test_a_teacher_in_every_step_is_no_evaluation_between_steps() -> None:
    log = make_log([(FWD, 3, 50, kinds.EVALUATION), (FWD, 7, 10), (BWD, 0, 20), (OPT, 9, 5)] * 12)
    assert evaluation_ns(log, find_steps(log)) == 0


def test_collections_go_to_the_step_that_they_end_in() -> None:
    log = make_log([(FWD, 7, 10), (BWD, 0, 20), (OPT, 9, 5)] * 4)
    rows = np.stack([log.time_ns, log.kind, log.flags, log.value])
    collected = np.array([[1_030, kinds.COLLECTED, 0, 7], [1_090, kinds.COLLECTED, 0, 3]])
    both = np.concatenate([rows, collected.T], axis=1)
    both = both[:, np.argsort(both[0], kind="stable")]
    assert find_steps(Events(0, *both)).collected_ns.tolist() == [7, 0, 3, 0]


def test_collections_are_logged_while_torch_is_observed(observe_here: Callable[[str], Events]) -> None:
    before = list(gc.callbacks)
    log = observe_here("collects.py")
    assert find_steps(log).collected_ns.astype(bool).tolist() == [False, False, True, False]
    assert gc.callbacks == before


def test_a_teacher_in_every_step_is_no_validation() -> None:
    step = [(DATA, 1, 5), (FWD, 6, 10, kinds.EVALUATION), (FWD, 7, 10), (BWD, 0, 20), (OPT, 9, 5)]
    steps = find_steps(make_log(step * 6))
    assert steps.regular.all()
    assert steps.phase_ns["forward"].tolist() == [20] * 6


def test_loaders_that_are_zipped_make_one_step() -> None:
    steps = find_steps(
        make_log([(DATA, 1, 5), (DATA, 2, 5), (FWD, 7, 10)] * 5 + [(DATA, 1, 1, 0, kinds.EXHAUSTED)])
    )
    assert steps.steps_from == "loader iterations"
    assert steps.duration_ns.tolist() == [23] * 5
    assert steps.phase_ns["data"].tolist() == [10] * 5


def test_a_loop_that_is_left_ends_its_last_step_with_what_was_seen() -> None:
    epoch = [(DATA, 1, 5, kinds.FIRST_FETCH), (FWD, 7, 10), *[(DATA, 1, 5), (FWD, 7, 10)] * 4]
    steps = find_steps(make_log(epoch * 2))
    assert steps.duration_ns.tolist() == [17, 17, 17, 17, 16] * 2
    assert np.flatnonzero(~steps.regular).tolist() == [0, 4, 5, 9]


def test_encoder_and_decoder_make_one_step() -> None:
    steps = find_steps(make_log([(FWD, 1, 5), (FWD, 2, 5)] * 5))
    assert steps.steps_from == "module calls"
    assert steps.duration_ns.tolist() == [11] * 5
    assert steps.phase_ns["rest"].tolist() == [1] * 5


def test_memory_and_device_time_go_to_their_step() -> None:
    step = [(FWD, 7, 10), (BWD, 0, 20), (OPT, 9, 5)]
    log = make_log(step * 3)
    ends = log.time_ns[log.kind == kinds.OPTIMIZER_END]
    extra = [
        (ends[0] + 1, kinds.RESIDENT_BYTES, 300),
        (ends[0] + 2, kinds.RESIDENT_BYTES, 200),
        (ends[2] + 1, kinds.RESIDENT_BYTES, 900),
        (ends[1], kinds.DEVICE_NS, 40),
    ]
    times, what, values = zip(*extra, strict=True)
    events = Events(
        log.start_ns,
        np.concatenate([log.time_ns, times]),
        np.concatenate([log.kind, what]),
        np.concatenate([log.flags, np.zeros(4, dtype=np.int64)]),
        np.concatenate([log.value, values]),
    )
    steps = find_steps(events)
    assert steps.resident_bytes.tolist() == [UNKNOWN, 300, UNKNOWN]
    assert steps.device_ns.tolist() == [UNKNOWN, 40, UNKNOWN]


@given(
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(3, 30),
)
def test_cycles_close_at_the_last_optimizer(num_first: int, num_second: int, repetitions: int) -> None:
    ids = np.array(([1] * num_first + [2] * num_second) * repetitions)
    assert cycle_length(ids) == num_first + num_second
    expected = np.arange(1, repetitions + 1) * (num_first + num_second) - 1
    np.testing.assert_array_equal(closings(ids), expected)


@given(st.integers(1, 500), st.integers(1, 500))
def test_one_optimizer_after_another_is_no_cycle(num_first: int, num_second: int) -> None:
    ids = np.array([1] * (num_first + 50) + [2] * (num_second + 50))
    np.testing.assert_array_equal(closings(ids), np.arange(len(ids)))


words = st.tuples(
    st.integers(1, 10**6),
    st.sampled_from([*range(1, 9), kinds.RESIDENT_BYTES, kinds.DEVICE_NS, kinds.ENDED]),
    st.integers(0, 1),
    st.integers(0, 3),
)


@given(st.lists(words, max_size=80))
def test_any_log_adds_up(rows: list[tuple[int, int, int, int]]) -> None:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    steps = find_steps(Events(0, np.cumsum(columns[:, 0]), columns[:, 1], columns[:, 2], columns[:, 3]))
    assert_adds_up(steps)
    assert (steps.duration_ns >= 0).all()
    ends = steps.start_ns + steps.duration_ns
    assert (ends[:-1] <= steps.start_ns[1:]).all()


phase = st.tuples(
    st.sampled_from([FWD, BWD, DATA, OPT]),
    st.integers(1, 2),
    st.integers(1, 50),
    st.integers(0, 1),
    st.integers(0, 1),
)


@given(st.lists(phase, max_size=6), st.integers(1, 12))
def test_loops_of_any_shape_add_up(step: list[tuple[int, int, int, int, int]], repetitions: int) -> None:
    steps = find_steps(make_log(step * repetitions))
    assert_adds_up(steps)
    optimizers = sum(kind == OPT for kind, *_ in step)
    if optimizers == 1 and repetitions > 1:
        assert len(steps) == repetitions
