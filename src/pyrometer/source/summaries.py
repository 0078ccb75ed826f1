"""What functions of a file return for the arguments of a call, and which arguments the file calls them with."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyrometer.source.annotations import annotated
from pyrometer.source.attributes import is_static
from pyrometer.source.called import Called
from pyrometer.source.frame import Frame
from pyrometer.source.index import FunctionNode
from pyrometer.source.value import NONE, UNKNOWN, Kind, Value, join_all, plain

if TYPE_CHECKING:
    from pyrometer.source.flow import Flow

DEEPEST_CALLS = 3
"""Calls of the file's own functions that a result is followed through."""

MOST_CONTEXTS = 6
"""Combinations of arguments for which one function's result is worked out."""

MOST_CALLERS = 8
"""Of a function that is called from more places, the arguments are not looked at."""

Arguments = tuple[Value, ...]
"""The values of a function's positional arguments."""


class Summaries:
    """The functions of one file as seen from their calls."""

    __slots__ = ("calls", "flow", "generators", "known")

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        yields = flow.module.nodes(ast.Yield, ast.YieldFrom)
        self.generators = frozenset(flow.module.function_of(node) for node in yields)
        self.known: dict[FunctionNode, dict[Arguments, Value]] = {}
        self.calls = 0

    def returned(self, called: Called, function: FunctionNode, *, bound: bool) -> Value:
        """What a function returns to a call; `bound` where it is called as a method."""
        if isinstance(function, ast.AsyncFunctionDef) or function in self.generators:
            return UNKNOWN
        given = positional_values(function, called.node, called.arguments, called.keywords, bound=bound)
        known = self.known.setdefault(function, {})
        if given not in known:
            busy = function in self.flow.running or self.calls >= DEEPEST_CALLS
            if busy or len(known) >= MOST_CONTEXTS:
                return annotated(self.flow.module, function.returns)
            known[given] = self.summarise(function, given)
        return plain(known[given], graph=known[given].graph and not called.frame.grad_off)

    def summarise(self, function: FunctionNode, arguments: Arguments) -> Value:
        """Pass over a function for such arguments and join what it returns."""
        self.calls += 1
        self.flow.analyse(function)
        self.flow.running.add(function)
        frame = Frame(self.flow, function, self.flow.claims.get(function, {}), quiet=True)
        self.flow.enter(frame, arguments)
        self.flow.running.discard(function)
        self.calls -= 1
        value = join_all(frame.returns) if frame.returns else NONE
        said = annotated(self.flow.module, function.returns)
        if value.kind is not Kind.UNKNOWN:
            return plain(value, graph=value.graph)
        several = any(returned.items for returned in frame.returns)
        return UNKNOWN if said.is_tensor and several else said  # `-> Tensor` before `return x, 3` is a slip.

    def from_callers(self, function: FunctionNode, depth: int) -> Arguments:
        """The positional arguments that all calls of this file agree on; empty where they say nothing."""
        positional = [*function.args.posonlyargs, *function.args.args]
        if all(
            annotated(self.flow.module, argument.annotation).kind is not Kind.UNKNOWN
            for argument in positional
        ):
            return ()
        module = self.flow.module
        calls = [call for call in module.heat.calls_of(function) if module.function_of(call) is not function]
        given = [self.from_call(function, call, depth) for call in calls[: MOST_CALLERS + 1]]
        if not given or len(given) > MOST_CALLERS:
            return ()
        return tuple(join_all(values) for values in zip(*given, strict=True))

    def from_call(self, function: FunctionNode, call: ast.Call, depth: int) -> Arguments:
        """The arguments of one call, as its own function makes them."""
        module, recorded = self.flow.module, self.flow.recorded
        direct = module.classes.called_function(call) is function
        caller = module.function_of(call) or module.tree
        self.flow.refine(caller, depth + 1)
        arguments = [recorded.get(argument, UNKNOWN) for argument in call.args] if direct else []
        keywords = (
            {keyword.arg: recorded.get(keyword.value, UNKNOWN) for keyword in call.keywords} if direct else {}
        )
        bound = isinstance(call.func, ast.Attribute)
        return positional_values(function, call, arguments, keywords, bound=bound)


def positional_values(
    function: FunctionNode,
    call: ast.Call,
    arguments: Sequence[Value],
    keywords: Mapping[str | None, Value],
    *,
    bound: bool,
) -> Arguments:
    """The values that a call gives a function's positional arguments, free of where they came from."""
    positional = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    values = [UNKNOWN] if bound and not is_static(function) else []
    if not any(isinstance(argument, ast.Starred) for argument in call.args):
        values += arguments
    values = values[: len(positional)]
    values += [UNKNOWN] * (len(positional) - len(values))
    for name, value in keywords.items():
        if name in positional:
            values[positional.index(name)] = value
    return tuple(plain(value, graph=value.graph) for value in values)
