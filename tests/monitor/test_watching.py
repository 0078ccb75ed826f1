"""Calls of every kind are counted exactly, and behave as if nobody watched."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest
import torch
from services import until

import pyrometer as pm

EACH = {"sample_every": 1}  # every call goes the longer way
FEW = {"sample_every": 64}


def calls_of(monitor, name):
    monitor.flush()
    return monitor.last(60).calls[name]


@pytest.fixture(params=[EACH, FEW], ids=["sampled", "fast"])
def watching(request, make):
    return make(**request.param)


def test_a_function_gives_what_it_gave_and_counts(watching):
    @watching.watch(units=len)
    def infer(x, *, twice=False):
        """Doc."""
        return x * (2 if twice else 1)

    assert [infer([1]), infer([1, 2], twice=True)] == [[1], [1, 2, 1, 2]]
    assert (infer.__name__, infer.__doc__) == ("infer", "Doc.")
    seen = calls_of(watching, "infer")
    assert (seen.num_ended, seen.units, seen.num_failed, seen.in_flight) == (2, 5, 0, 0)
    assert seen.latency_s.count == 2


def test_an_error_reaches_the_caller_and_is_counted_by_type(watching):
    @watching.watch
    def divide(a, b):
        return a / b

    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            divide(1, 0)
    with pytest.raises(TypeError):
        divide(1)
    assert divide(4, 2) == 2
    seen = calls_of(watching, "divide")
    assert (seen.num_ended, seen.num_failed) == (1, 4)
    assert seen.errors == {"ZeroDivisionError": 3, "TypeError": 1}


def test_a_method_keeps_its_self(watching):
    class Model:
        @watching.watch(name="model")
        def run(self, x):
            return self, x

    model = Model()
    assert model.run(3) == (model, 3)
    assert calls_of(watching, "model").num_ended == 1


def test_a_coroutine_is_timed_until_its_end(watching):
    @watching.watch
    async def answer(fails):
        await asyncio.sleep(0)
        if fails:
            raise KeyError(fails)
        return 7

    async def both():
        assert await answer(False) == 7
        with pytest.raises(KeyError):
            await answer(True)
        waiting = asyncio.ensure_future(answer(False))
        await asyncio.sleep(0)
        assert watching.snapshot()["in_flight"] == 1
        await waiting

    assert inspect.iscoroutinefunction(answer)
    asyncio.run(both())
    seen = calls_of(watching, "answer")
    assert (seen.num_ended, seen.errors, seen.in_flight) == (2, {"KeyError": 1}, 0)


def test_a_generator_takes_what_is_sent_and_thrown_and_returns(watching):
    caught = []

    @watching.watch
    def talk():
        got = yield "first"
        try:
            yield got
        except ValueError as error:
            caught.append(error)
            yield "mended"
        return "end"

    course = talk()
    assert [next(course), course.send("sent"), course.throw(ValueError("x"))] == ["first", "sent", "mended"]
    with pytest.raises(StopIteration) as stop:
        next(course)
    assert stop.value.value == "end"
    assert len(caught) == 1
    early = talk()
    next(early)
    early.close()
    seen = calls_of(watching, "talk")
    assert (seen.num_ended, seen.num_failed, seen.units, seen.first_item_s.count) == (2, 0, 4, 2)


def test_an_asynchronous_generator_is_one_call(watching):
    @watching.watch(units=lambda item: 10)
    async def tokens(n):
        for i in range(n):
            yield i
        if n == 2:
            raise OSError(n)

    async def read():
        assert [item async for item in tokens(3)] == [0, 1, 2]
        with pytest.raises(OSError):
            [item async for item in tokens(2)]

    asyncio.run(read())
    seen = calls_of(watching, "tokens")
    assert (seen.num_ended, seen.errors, seen.units, seen.first_item_s.count) == (1, {"OSError": 1}, 50, 2)


def test_a_module_is_watched_and_let_go(watching):
    model = torch.nn.Linear(4, 2)
    before = dict(vars(model))
    assert watching.wrap(model) is model
    assert watching.wrap(model) is model  # again is as good as once
    x = torch.randn(3, 4)
    torch.testing.assert_close(model(x), torch.nn.functional.linear(x, model.weight, model.bias))
    seen = calls_of(watching, "Linear")
    assert (seen.num_ended, seen.numerics.num_checked > 0) == (1, True)
    watching.unwrap(model)
    assert vars(model) == before


def test_close_lets_modules_go(make):
    monitor, model = make(), torch.nn.Linear(4, 2)
    monitor.wrap(model)
    monitor.close()
    assert "forward" not in vars(model)


def test_a_block_says_what_it_is_worth(watching):
    with watching.request("plan", trace_id="abc", route="a") as request:
        request.units = 5
    with pytest.raises(ValueError), watching.request("plan"):
        raise ValueError
    seen = calls_of(watching, "plan")
    assert (seen.num_ended, seen.errors, seen.units) == (1, {"ValueError": 1}, 5)


def test_snapshot_is_of_now(monitor):
    @monitor.watch
    def infer():
        assert monitor.snapshot()["in_flight"] == 1

    assert monitor.snapshot()["p50_s"] is None
    infer()
    found = monitor.snapshot()
    assert list(found) == [
        "requests", "errors", "p50_s", "p95_s", "p99_s", "in_flight", "dropped_samples", "alarms",
    ]  # fmt: skip
    assert (found["requests"], found["errors"], found["in_flight"], found["alarms"]) == (1, 0, 0, [])
    assert 0 < found["p50_s"] <= found["p99_s"]


def test_too_many_calls_are_counted_as_dropped(make, monkeypatch):
    monitor = make(capacity=100)
    infer = monitor.watch(name="infer")(lambda: None)
    monkeypatch.setattr(monitor._collector, "is_running", True)  # nobody drains
    for _ in range(1000):
        infer()
    seen = calls_of(monitor, "infer")
    assert (seen.num_ended, seen.num_dropped, seen.latency_s.count) == (1000, 900, 100)
    assert monitor.snapshot()["dropped_samples"] == 900


def test_calls_of_eight_threads_are_counted_exactly(make):
    monitor = make(capacity=500)

    @monitor.watch
    def infer(i):
        if not i % 10:
            raise ValueError
        return i

    def many():
        for i in range(5000):
            try:
                infer(i)
            except ValueError:
                continue

    threads = [threading.Thread(target=many) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    seen = calls_of(monitor, "infer")
    assert (seen.num_ended, seen.num_failed, seen.in_flight) == (36_000, 4_000, 0)
    assert seen.latency_s.count + seen.num_dropped == 36_000


def test_a_slow_call_is_told_at_once(make):
    monitor = make(limit_s=1e-9)
    heard = threading.Event()

    class Listener:
        def samples(self, call, at_s, latencies_s):
            assert (call, len(latencies_s)) == ("infer", 1)
            heard.set()

        def tick(self, tick):
            return []

        def alarms(self):
            return []

    monitor.add(Listener())
    monitor.watch(name="infer")(lambda: None)()
    assert heard.wait(30)


def test_disabled_is_nothing_at_all(make, monkeypatch):
    monkeypatch.setenv("PYROMETER_DISABLE", "1")
    before = threading.active_count()
    monitor = make(folder="lines", port=0)

    def infer():
        return 1

    model = torch.nn.Linear(2, 2)
    assert monitor.watch(infer) is infer
    assert monitor.watch(units=len)(infer) is infer
    assert monitor.wrap(model) is model
    assert "forward" not in vars(model)
    with monitor.request("plan") as request:
        request.units = 2
    monitor.counter("detections").add(1)
    monitor.start()
    assert (monitor.port, monitor.flush(), monitor.snapshot()["requests"]) == (None, True, 0)
    assert threading.active_count() == before


def test_what_is_watched_is_public():
    assert pm.Monitor.__module__ == "pyrometer.monitor.monitor"


def test_a_request_is_an_outermost_watched_call(make):
    monitor = make(sample_every=1)
    inner = monitor.watch(name="inner")(lambda: 1)
    outer = monitor.watch(name="outer")(lambda: inner() + inner())
    for _ in range(5):
        outer()
    with monitor.request("block"):
        inner()
    assert monitor.snapshot()["requests"] == 6
    monitor.flush()
    assert monitor.snapshot()["requests"] == 6
    calls = monitor.last(60).calls
    assert {name: one.num_ended for name, one in calls.items()} == {"inner": 11, "outer": 5, "block": 1}
    inner()
    assert monitor.snapshot()["requests"] == 18  # it can be called from outside: each call of it is a request


def test_what_is_awaited_within_a_watched_coroutine_is_a_part_and_a_task_is_not(make):
    monitor = make(sample_every=1)

    @monitor.watch
    async def step():
        await asyncio.sleep(0)

    @monitor.watch
    async def plan():
        await step()

    @monitor.watch
    async def background():
        await asyncio.sleep(0)

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(plan())
            group.create_task(background())

    asyncio.run(main())
    assert monitor.snapshot()["requests"] == 2


def test_a_generator_is_not_around_what_its_reader_calls(make):
    monitor = make(sample_every=1)
    detect = monitor.watch(name="detect")(lambda frame: frame)
    frames = monitor.watch(name="frames")(lambda: iter(()))

    @monitor.watch
    def camera():
        yield from (1, 2)

    for frame in camera():
        detect(frame)
    frames()
    assert monitor.snapshot()["requests"] == 4


def test_an_idle_monitor_dozes_and_a_call_that_is_looked_at_wakes_it(make):
    monitor = make(sample_every=1)
    watched = monitor.watch(name="infer")(lambda: 7)
    watched()
    until(lambda: not monitor._collector._is_awake, "the doze")
    watched()
    assert monitor._collector._is_awake
    until(lambda: not monitor._probes["infer"].intake.ring, "a drain")
