"""Compiling one function for one set of sizes, so that nothing else that is compiled comes in between.

Dynamo keeps graphs by code object: closures of one function share theirs, recompile one another, turn sizes dynamic on
their own, and stop at eight. So every graph gets a code object of its own, compiled with `dynamic=False`, and no setting of
torch is changed. That does not reach functions which are called behind a graph break: they have one code object for all
graphs. For models that break there is torch's `isolate_recompiles` (from 2.13 on). It keeps its region in a variable of the
whole process, so that calls from several threads recompile without end; such calls therefore take turns.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import torch

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.private import code_cache, guard_filter
from pyrometer.errors import InputError

_TURN = threading.RLock()


@dataclass(frozen=True)
class CompileSettings:
    """What is handed to `torch.compile`, the sizes apart."""

    backend: Any = "inductor"
    mode: str | None = None
    options: dict[str, Any] | None = None
    fullgraph: bool = False

    def __post_init__(self) -> None:
        if self.mode is not None and self.options is not None:
            raise InputError("mode and options: torch.compile takes one or the other; drop one of them")

    def arguments(self) -> dict[str, Any]:
        """As keyword arguments; what is not set is left out."""
        chosen = {"mode": self.mode, "options": self.options}
        return {
            "backend": self.backend,
            "fullgraph": self.fullgraph,
            **{name: value for name, value in chosen.items() if value is not None},
        }

    def with_few_guards(self) -> dict[str, Any]:
        """The same, without guards on torch's own names, where there is no mode, which excludes options."""
        if self.mode is not None or guard_filter.missing():
            return self.arguments()
        options = {"guard_filter_fn": guard_filter.of_the_program, **(self.options or {})}
        return {**self.arguments(), "options": options}


@dataclass(eq=False)
class IsolatedGraph:
    """A compiled function that shares nothing with any other; what was compiled is freed together with this object.

    Attributes:
        function: what is compiled.
        settings: how.
        dynamic: one graph for any size, rather than for the sizes of the first call.
        broken: the function has graph breaks, so that what is called behind them must be kept apart too.
    """

    function: Callable[..., Any]
    settings: CompileSettings
    dynamic: bool = False
    broken: bool = False
    _compiled: Callable[..., Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        own = with_own_code(self.function)
        arguments = self.settings.with_few_guards()
        if self.broken and isolates_recompiles():
            arguments["isolate_recompiles"] = True
        self._compiled = torch.compile(own, dynamic=self.dynamic, **arguments)
        # While a call is under way its caller holds this object, so that nothing is freed beneath it.
        weakref.finalize(self, code_cache.forget, own.__code__).atexit = False

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; the first call compiles."""
        with _TURN if self.broken else contextlib.nullcontext():
            return self._compiled(*args, **kwargs)

    def call_counted(self, *args: Any, **kwargs: Any) -> tuple[Any, int]:
        """Run it, and count the graphs that this compiles."""
        with collect() as collector:
            output = self.call(*args, **kwargs)
        graphs = collector.log().of("dynamo_output_graph")
        return output, sum(1 for graph in graphs if graph.thread == threading.get_ident())


def isolates_recompiles() -> bool:
    """Whether this torch keeps the graphs of several `torch.compile` calls apart; from 2.13 on."""
    return "isolate_recompiles" in inspect.signature(torch.compile).parameters


def with_own_code(function: Callable[..., Any]) -> FunctionType:
    """A function that calls another, with a code object that no other function has."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return FunctionType(run.__code__.replace(), run.__globals__, run.__name__, None, run.__closure__)
