"""Steps whose time is not that of their work: what is refused, what is said, and what is left alone."""

from __future__ import annotations

import asyncio
import functools
import io
import itertools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.clock import HostClock
from pyrometer.bench.comparison.interleaving import Side, require_genuine
from pyrometer.bench.genuine import _time_of, doubts, unfinished
from pyrometer.errors import InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore:coroutine .* was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning"
)

X = torch.ones(200, 200)


def work(x=X, rounds=20):
    for _ in range(rounds):
        x = x @ X * 0.004
    return x


def generated(x):
    for _ in range(3):
        yield work(x)


async def awaited(x):
    return work(x)


class Lazy:
    """An iterator of the program's own."""

    def __iter__(self):
        return self

    def __next__(self):
        return work(X)


class Kept(nn.Module):
    """Answers by the identity of its input, as caches of features do."""

    def __init__(self):
        super().__init__()
        self.answers = {}

    def forward(self, x):
        if id(x) not in self.answers:
            self.answers[id(x)] = (x, work(x, 200))
        return self.answers[id(x)][1]


@functools.lru_cache
def remembered(x):
    return work(x, 200)


def doubts_of(workload, first_call_s=1.0):
    """After a few steps, with what a step takes by then."""
    clock = HostClock()
    with workload.open() as session:
        times = []
        for _ in range(3):
            start = clock.host_ns()
            session.step(session.prepare())
            times.append((clock.host_ns() - start) * 1e-9)
        return [doubt.code for doubt in doubts(session, clock, min(times), first_call_s)[0]]


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        (generated(X), "a generator"),
        ({"a": [1, (i for i in ())]}, "a generator"),
        (map(abs, [1]), "a lazy iterator (map)"),
        (Future(), "a future that is not done"),
        (torch.futures.Future(), "a future that is not done"),
        (torch._C.Future([]), "a future that is not done"),
        ({"boxes": itertools.chain([1])}, "a lazy iterator (chain)"),
        (Lazy(), "a lazy iterator (Lazy)"),
        (iter([1]), None),
        (io.StringIO(), None),
        (X, None),
        ([X, {"n": 3, "name": "x"}, None, range(3), iter([1])], None),
    ],
)
def test_what_has_yet_to_run_is_known_by_its_kind(output, kind):
    assert unfinished(output) == kind


def test_what_has_run_to_its_end_is_finished():
    ended, done = generated(X), Future()
    list(ended)
    done.set_result(1)
    assert unfinished([ended, done]) is None


@pytest.mark.parametrize("step", [generated, awaited, lambda x: map(work, [x])])
def test_a_comparison_refuses_what_returns_before_it_works(step):
    with pytest.raises(InputError, match="its work has not run when it returns"):
        pm.compare(pm.Call(lambda: work(X), name="A"), pm.Call(step, X, name="B"), budget_s=2)


def test_a_coroutine_that_is_awaited_inside_is_no_doubt():
    assert doubts_of(pm.Call(awaited, X)) == ["returns_unfinished"]
    assert doubts_of(pm.Call(lambda: asyncio.run(awaited(X)))) == []


@pytest.mark.parametrize("kept", [pm.Inference(Kept(), X), pm.Call(remembered, X)])
def test_answers_kept_by_the_identity_of_inputs_are_refused(kept):
    with pytest.raises(InputError, match="answers that are kept by the identity of inputs; give each step"):
        pm.compare(kept, pm.Call(work, name="B"), budget_s=2)


def test_a_pool_that_is_not_waited_for_is_refused():
    with ThreadPool(1) as pool:
        assert doubts_of(pm.Call(lambda: pool.apply_async(work, (X, 100)))) == ["returns_unfinished"]
        assert doubts_of(pm.Call(lambda: pool.apply_async(work, (X, 100)).get())) == []


def test_a_wait_between_the_readings_of_two_clocks_hides_no_kept_answer(clock, timed):
    """The thread is sent to wait between the last reading of the time and that of its queueing."""
    waits = iter([0, 1] * 100)
    clock.queued_ns = lambda: clock.pass_time(0.01 * (wait := next(waits))) or round(wait * 1e7)
    with timed(lambda _: 0.005).open() as session:
        assert _time_of(session, clock, None) >= 0.005


def test_fresh_inputs_in_each_step_are_no_doubt():
    model = Kept()
    assert doubts_of(pm.Inference(model, X.clone)) == []
    assert doubts_of(pm.Inference(nn.Linear(200, 200), X)) == []
    assert doubts_of(pm.Call(work, X)) == []


def test_a_thread_that_works_on_is_told_and_one_that_is_waited_for_is_not():
    pool = ThreadPoolExecutor(1)
    waits = threading.Event()
    idle = threading.Thread(target=waits.wait, daemon=True)
    idle.start()  # beside the step, and at rest
    try:
        assert doubts_of(pm.Call(lambda: pool.submit(work, X, 300) and None)) == ["work_put_off"]
        assert doubts_of(pm.Call(lambda: pool.submit(work, X, 300).result())) == []
    finally:
        pool.shutdown(cancel_futures=True)
        waits.set()
        idle.join()


def test_a_measurement_says_so():
    measured = pm.measure(pm.Call(generated, X), budget_s=0.3)
    assert measured.warnings[0].code == "returns_unfinished"
    assert "a step returns a generator" in measured.warnings[0].message


def test_a_side_is_refused_by_its_name():

    with pm.Call(generated, X).open() as session:
        side = Side("B", session, HostClock())
        side.warm()
        with pytest.raises(InputError, match="B: a step returns a generator"):
            require_genuine([side])


@pytest.mark.parametrize("loads_ahead", [False, True])
def test_threads_may_prepare_the_next_step_where_each_has_inputs_of_its_own(loads_ahead):

    pool = ThreadPoolExecutor(1)
    with pm.Call(lambda: pool.submit(work, X, 300) and None).open() as session:
        session.may_load_ahead = loads_ahead
        side = Side("B", session, HostClock())
        side.warm()
        try:
            if loads_ahead:
                assert [doubt.code for doubt in require_genuine([side])] == ["work_put_off"]
            else:
                with pytest.raises(InputError, match=r"B: after \d+ steps? in .* works on for"):
                    require_genuine([side])
        finally:
            pool.shutdown(cancel_futures=True)
