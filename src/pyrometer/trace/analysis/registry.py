"""The registry of analyses: each names itself where it is defined."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeVar

import pyrometer.trace.analysis as home
from pyrometer.errors import InputError
from pyrometer.trace.progress import tell
from pyrometer.trace.trace import RankTrace, Trace

Scope = Literal["rank", "job"]
F = TypeVar("F", bound=Callable[..., Any])


class Analysis(NamedTuple):
    """One entry of the registry."""

    name: str
    scope: Scope  # of one rank, or of all ranks of a job
    function: Callable[..., Any]

    @property
    def summary(self) -> str:
        """First line of its docstring."""
        return (self.function.__doc__ or "").strip().split("\n")[0]


_REGISTRY: dict[str, Analysis] = {}


def analysis(name: str, *, scope: Scope = "rank") -> Callable[[F], F]:
    """Register a function of a `RankTrace` (scope `rank`) or a `Trace` (scope `job`).

    Its result is kept with the trace, so that analyses that build on each other may simply call each other; a call
    with options is computed anew.

    Raises:
        ValueError: another function has the name.
    """

    def register(function: F) -> F:
        held = _REGISTRY.get(name)
        place = f"{function.__module__}.{function.__qualname__}"
        if held is not None and f"{held.function.__module__}.{held.function.__qualname__}" != place:
            raise ValueError(
                f"two analyses are called {name!r}: {held.function.__module__} and {function.__module__}"
            )

        @functools.wraps(function)
        def remembered(trace: Any, *args: Any, **options: Any) -> Any:
            if args or options:
                return function(trace, *args, **options)
            return trace.results.once(name, lambda: _told(trace))

        def _told(trace: Any) -> Any:
            done = sum(other in trace.results for other in _REGISTRY) / len(_REGISTRY)
            tell(done, f"analysing: {name.replace('_', ' ')}")
            return function(trace)

        _REGISTRY[name] = Analysis(name, scope, remembered)
        return remembered  # type: ignore[return-value]

    return register


def analyses() -> dict[str, Analysis]:
    """Every analysis by name, in the order of the alphabet."""
    for module in pkgutil.walk_packages(home.__path__, f"{home.__name__}."):
        import_module(module.name)
    return dict(sorted(_REGISTRY.items()))


def analyze(trace: Trace | RankTrace, name: str, *, rank: int | None = None, **options: Any) -> Any:
    """Run one analysis: a record, or a Polars frame where the answer is a table.

    Args:
        trace: what `read_trace` gave, or one of its ranks.
        name: see `analyses()`.
        rank: which rank, for an analysis of one rank; may be left out when the trace holds only one.
        options: the analysis's own.

    Raises:
        InputError: there is no analysis of this name, or no such rank.
    """
    known = analyses()
    if name not in known:
        raise InputError(f"{name!r} is not an analysis; there are {', '.join(known)}")
    found = known[name]
    if found.scope == "job":
        return found.function(trace if isinstance(trace, Trace) else Trace((trace,)), **options)
    return found.function(trace.rank(rank) if isinstance(trace, Trace) else trace, **options)
