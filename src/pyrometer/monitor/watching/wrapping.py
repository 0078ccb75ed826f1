"""The functions that stand in for watched ones, per kind: plain, coroutine, generator, asynchronous generator.

They are closures, since a call of a closure is the cheapest there is: a context manager costs 0.6 µs more. The first call and then
one of `sample_every` goes the longer way through the probe.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Generator
from time import perf_counter_ns
from typing import Any, cast

from pyrometer.monitor.watching.probe import Probe


def watched(function: Callable[..., Any], probe: Probe) -> Callable[..., Any]:
    """A function that does what the given one does, and tells the probe."""
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if inspect.iscoroutinefunction(called):
        kind = _coroutine
    elif inspect.isasyncgenfunction(called):
        kind = _async_generator
    elif inspect.isgeneratorfunction(called):
        kind = _generator
    else:
        kind = _plain
    standing_in = kind(function, probe)
    return cast("Callable[..., Any]", functools.update_wrapper(standing_in, function))


def _plain(function: Callable[..., Any], probe: Probe) -> Callable[..., Any]:
    intake = probe.intake
    begin, mask, ring, room, limit = (
        intake.started.up,
        intake.mask,
        intake.ring,
        intake.capacity,
        intake.limit_ns,
    )
    append, drop, clock = ring.append, intake.dropped.up, perf_counter_ns
    fail, slow, add_units, has_units = probe.fail, probe.slow, probe.add_units, probe.units is not None
    before, after = probe.before, probe.after

    def call(*args: Any, **kwargs: Any) -> Any:
        if not begin() & mask:
            return sampled(args, kwargs)
        started = clock()
        try:
            output = function(*args, **kwargs)
        except BaseException as error:
            fail(error, clock() - started, args)
            raise
        took = clock() - started
        if len(ring) < room:
            append(took)
            if has_units:
                add_units(output)
        else:
            drop()
        if took > limit:
            slow(took, args)
        return output

    def sampled(args: Any, kwargs: Any) -> Any:
        begun = before()
        started = clock()
        try:
            output = function(*args, **kwargs)
        except BaseException as error:
            fail(error, clock() - started, args)
            raise
        took = clock() - started
        _end(probe, took, args, output)
        after(begun, took, args, output)
        return output

    return call


def _end(probe: Probe, took: int, args: Any, output: Any) -> None:
    probe.intake.end(took)
    if probe.units is not None:
        probe.add_units(output)
    if took > probe.intake.limit_ns:
        probe.slow(took, args)


def _coroutine(function: Callable[..., Any], probe: Probe) -> Callable[..., Any]:
    intake = probe.intake

    async def call(*args: Any, **kwargs: Any) -> Any:
        is_sample = not intake.started.up() & intake.mask
        begun = probe.before() if is_sample else None
        started = perf_counter_ns()
        try:
            output = await function(*args, **kwargs)
        except BaseException as error:
            probe.fail(error, perf_counter_ns() - started, args)
            raise
        took = perf_counter_ns() - started
        _end(probe, took, args, output)
        if is_sample:
            probe.after(begun, took, args, output)
        return output

    return call


def _generator(function: Callable[..., Any], probe: Probe) -> Callable[..., Any]:
    probe.intake.has_units = True

    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        course = _Course(probe, args)
        inner = function(*args, **kwargs)
        try:
            item = next(inner)
            course.item(item)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    inner.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is thrown into the user's generator
                    item = inner.throw(error)
                else:
                    item = inner.send(sent)
                course.item(item)
        except StopIteration as stop:
            course.end()
            return stop.value
        except GeneratorExit:
            course.end()  # the reader has enough, which is no failure
            raise
        except BaseException as error:
            course.fail(error)
            raise

    return call


def _async_generator(function: Callable[..., Any], probe: Probe) -> Callable[..., Any]:
    probe.intake.has_units = True

    async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        course = _Course(probe, args)
        inner = function(*args, **kwargs)
        try:
            item = await anext(inner)
            course.item(item)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is thrown into the user's generator
                    item = await inner.athrow(error)
                else:
                    item = await inner.asend(sent)
                course.item(item)
        except StopAsyncIteration:
            course.end()
        except GeneratorExit:
            course.end()
            raise
        except BaseException as error:
            course.fail(error)
            raise

    return call


class _Course:
    """One run of a generator; an item is worth one unit unless the user says otherwise."""

    def __init__(self, probe: Probe, args: Any) -> None:
        self._probe = probe
        self._args = args
        self._is_sample = not probe.intake.started.up() & probe.intake.mask
        self._begun = probe.before() if self._is_sample else None
        self._last: Any = None
        self._num_items = 0
        self._started = perf_counter_ns()

    def item(self, item: Any) -> None:
        if not self._num_items and len(self._probe.intake.first_items) < self._probe.intake.capacity:
            self._probe.intake.first_items.append(perf_counter_ns() - self._started)
        self._num_items += 1
        self._last = item
        if self._probe.units is not None:
            self._probe.add_units(item)

    def end(self) -> None:
        took = perf_counter_ns() - self._started
        self._probe.intake.end(took)
        if self._probe.units is None:
            self._probe.intake.units.append(float(self._num_items))
        if took > self._probe.intake.limit_ns:
            self._probe.slow(took, self._args)
        if self._is_sample:
            self._probe.after(self._begun, took, self._args, self._last)

    def fail(self, error: BaseException) -> None:
        self._probe.fail(error, perf_counter_ns() - self._started, self._args)
