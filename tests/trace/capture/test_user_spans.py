"""`span` on the timeline, in compiled code, in coroutines, on threads, and without torch."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections import Counter

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from pyrometer.errors import InputError
from pyrometer.trace.capture.workload import record_trace
from pyrometer.trace.span import span
from pyrometer.workload.call import Call


def names_while(function):
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        function()
    return Counter(event.key for event in profiler.events())


@span("whole")
def nested(x):
    with span("outer"):
        with span("inner"):
            y = x + 1
        with span("inner"):
            return y * 2


def test_spans_nest_and_lie_around_their_work(count):
    trace = record_trace(Call(nested, torch.ones(2)), steps=2, warmup=0)
    assert [count(trace, name) for name in ("whole", "outer", "inner")] == [2, 2, 4]
    rank = trace.rank()
    names = rank.events["name"].to_list()
    at = names.index("inner")
    above = []
    while (at := rank.events["parent"][at]) is not None and at >= 0:
        above.append(names[at])
    assert above[:2] == ["outer", "whole"]


def test_without_a_profiler_nothing_happens():
    assert nested(torch.ones(2)).tolist() == [4.0, 4.0]
    assert nested.__name__ == "nested"


def test_one_object_may_be_entered_again(count):
    once = span("again")

    def run():
        with once, once:
            torch.ones(1)
        with once:
            pass

    assert count(record_trace(Call(run), steps=1, warmup=0), "again") == 3


def test_an_exception_ends_the_span():
    def run():
        with pytest.raises(ValueError), span("broken"):
            raise ValueError
        with span("next"):
            pass

    assert names_while(run)["broken"] == 1


def test_a_profiler_that_starts_or_stops_within_a_span_is_no_trouble():
    with span("around"), profile(activities=[ProfilerActivity.CPU]) as profiler:
        torch.ones(1)
    assert "around" not in {event.name for event in profiler.events()}
    profiler = profile(activities=[ProfilerActivity.CPU])
    profiler.start()
    with span("cut"):
        profiler.stop()


def test_names_are_made_harmless():
    assert names_while(lambda: nested_name('a "b"\nc'))["a 'b' c"] == 1


def nested_name(name):
    with span(name):
        pass


def test_coroutines():
    @span("waits")
    async def wait():
        await asyncio.sleep(0.001)
        return 3

    async def run():
        return await asyncio.gather(wait(), wait())

    assert asyncio.run(run()) == [3, 3]
    assert names_while(lambda: asyncio.run(run()))["waits"] == 2


def test_threads():
    together = span("shared by decoration")(lambda: torch.ones(1))
    threads = [threading.Thread(target=lambda: [together() for _ in range(50)]) for _ in range(4)]
    with profile(activities=[ProfilerActivity.CPU]):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_a_generator_is_refused():
    with pytest.raises(InputError, match="generator"):

        @span("g")
        def generate():
            yield 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_without_a_graph_break(backend):
    def work(x):
        with span("compiled"):
            return nested(x) + 1

    compiled = torch.compile(work, fullgraph=True, backend=backend)
    assert compiled(torch.ones(2)).tolist() == [5.0, 5.0]
    assert names_while(lambda: compiled(torch.ones(2)))["compiled"] == 0


def test_a_graph_break_within_a_span_is_survived():
    def work(x):
        with span("breaks"):
            y = x + 1
            torch._dynamo.graph_break()
            return y * 2

    assert torch.compile(work, backend="eager")(torch.ones(2)).tolist() == [4.0, 4.0]


@pytest.mark.exhaustive
def test_torch_is_not_imported():
    code = """
import sys
from pyrometer.trace.span import span
@span("a")
def f():
    with span("b"):
        return 1
assert f() == 1
assert "torch" not in sys.modules
import torch
assert f() == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)
