"""`pm.span`: a name of your own on the timeline, as a context manager or a decorator.

>>> @span("lidar.preprocess")
... def preprocess(points):
...     with span("lidar.voxelise"):
...         return sorted(points)
>>> preprocess([3, 1, 2])
[1, 2, 3]
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, TypeVar

from pyrometer.errors import InputError
from pyrometer.workload.script.startup._pyrometer_inside.kineto import sanitised

F = TypeVar("F", bound=Callable[..., Any])


class Watcher(Protocol):
    """Told of every span while someone waits for steps."""

    def span_began(self) -> None:
        """A span was entered, on this thread."""

    def span_ended(self, name: str) -> None:
        """A span was left."""


_watcher: Watcher | None = None


def watch_spans(watcher: Watcher | None) -> None:
    """Have spans reported; `None` ends it."""
    global _watcher  # noqa: PLW0603 - spans are made anywhere, and must find it at the least cost
    _watcher = watcher


class Span:
    """What `span` gives: enter it, or decorate a function with it; a new one for each `with` that may run in parallel."""

    __slots__ = ("_name", "_running")

    def __init__(self, name: str) -> None:
        self._name = name
        self._running: Any = None  # the profiler's object, and the same of the call around this one

    def __enter__(self) -> Span:  # noqa: PYI034 - typing.Self needs Python 3.11
        if _watcher is not None:
            _watcher.span_began()
        # Not imported: a program that has not loaded torch so far has nothing that could be profiled.
        profiler = sys.modules.get("torch.autograd.profiler")
        if profiler is not None and getattr(profiler, "_is_profiler_enabled", False):
            record = profiler.record_function(sanitised(self._name))
            record.__enter__()
            self._running = (record, self._running)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._running is not None:
            record, self._running = self._running
            record.__exit__(kind, error, traceback)
        if _watcher is not None:
            _watcher.span_ended(self._name)

    def __call__(self, function: F) -> F:
        """Put every call of a function, or every run of a coroutine, into a span of this name."""
        name = self._name
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise InputError(
                f"span({name!r}): {function.__qualname__} is a generator, whose time is also its caller's; "
                "use `with span(...)` inside"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def spanned_coroutine(*args: Any, **kwargs: Any) -> Any:
                with span(name):
                    return await function(*args, **kwargs)

            return spanned_coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def spanned(*args: Any, **kwargs: Any) -> Any:
            with span(name):
                return function(*args, **kwargs)

        return spanned  # type: ignore[return-value]


def span(name: str) -> Span:
    """Name a stretch of your program; it shows in every trace that is recorded while it runs.

    ::

        with pm.span("lidar.preprocess"):
            points = voxelise(points)

        @pm.span("planner.rollout")
        def rollout(state): ...

    Spans nest at will, on any thread and in coroutines; those of coroutines that take turns on a thread overlap in the
    trace. Without a profiler a span costs well below a microsecond. `torch.compile` goes through it without a graph
    break, and leaves it out of the compiled code. torch is not imported.

    Args:
        name: printable ASCII; other characters show as `?`, quotes as `'`, backslashes as `/`.

    Raises:
        InputError: it decorates a generator.
    """
    torch = sys.modules.get("torch")
    if torch is not None and _is_compiling(torch):
        return contextlib.nullcontext()  # type: ignore[return-value]
    return Span(name)


def _is_compiling(torch: Any) -> bool:
    """Whether this very line is being compiled; false while torch itself is still being imported."""
    compiler = getattr(torch, "compiler", None)
    return compiler is not None and compiler.is_compiling()
