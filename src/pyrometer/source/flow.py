"""Values of expressions: each function is passed over when something in it is asked for, and then remembered."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrometer.source.annotations import annotated
from pyrometer.source.attributes import is_static
from pyrometer.source.expressions import all_arguments
from pyrometer.source.frame import Frame
from pyrometer.source.index import FunctionNode, last_name
from pyrometer.source.instances import Instances
from pyrometer.source.knowledge import MODEL_NAME
from pyrometer.source.parameters import implied
from pyrometer.source.statements import run, switches_gradients_off
from pyrometer.source.summaries import Summaries
from pyrometer.source.value import (
    CONTAINER,
    HOST,
    UNKNOWN,
    Kind,
    Value,
)
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.source.module import Module

NEVER_CALLED_SO = words("""
    append extend insert add discard update setdefault get pop items keys values copy clear index count
    join split strip replace format startswith endswith encode decode lower upper
    debug info warning error exception write writeline writelines read readline
    size dim numel stride element_size to type clone contiguous detach item tolist
    """)
"""Methods of containers, text, loggers, files and tensors: a module is not kept under such a name."""

DEEPEST_CALLERS = 2
"""Calls that the arguments of a function are followed back through."""

MOST_PASSES = 3
"""Over one function: each later one knows what the earlier ones learnt from uses."""


class Flow:
    """The values of the expressions of one file."""

    __slots__ = (
        "claims",
        "depth",
        "ever",
        "implied",
        "instances",
        "module",
        "recorded",
        "refined",
        "running",
        "summaries",
    )

    def __init__(self, module: Module) -> None:
        self.module = module
        self.recorded: dict[ast.AST, Value] = {}
        self.ever: dict[ast.AST, dict[str, Value]] = {}
        """Of each function and of the file, the values of its names over all their assignments."""
        self.claims: dict[ast.AST, dict[ast.AST, Value]] = {}
        """What uses in each function say about its names."""
        self.implied: dict[FunctionNode, dict[ast.arg, Value]] = {}
        """What the parameters of each function are by their uses."""
        self.running: set[ast.AST] = set()
        self.refined: set[ast.AST] = set()
        self.instances = Instances(self)
        self.summaries = Summaries(self)
        self.depth = 0
        """Expressions and blocks within each other that are being looked at, those of called functions included."""

    def value_of(self, expression: ast.expr) -> Value:
        """The value of an expression where it stands."""
        self.refine(self.module.function_of(expression) or self.module.tree)
        return self.recorded.get(expression, UNKNOWN)

    def record(self, node: ast.AST, value: Value) -> None:
        """Note the value of an expression."""
        if value is UNKNOWN or (value.kind is Kind.UNKNOWN and value.of is None):
            self.recorded.pop(node, None)
        else:
            self.recorded[node] = value

    def analyse(self, scope: ast.AST) -> None:
        """Pass over a function, if that was not done, until its uses of names tell nothing new about them."""
        if scope not in self.ever and scope not in self.running:
            self.pass_over(scope, ())

    def refine(self, scope: ast.AST, depth: int = 0) -> None:
        """Pass over a function with the arguments that this file calls it with, where they say more."""
        if scope in self.refined:
            return
        self.refined.add(scope)
        self.analyse(scope)
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) or depth > DEEPEST_CALLERS:
            return
        given = self.summaries.from_callers(scope, depth)
        if scope not in self.running and any(value.kind is not Kind.UNKNOWN for value in given):
            self.pass_over(scope, given)

    def pass_over(self, scope: ast.AST, given: Sequence[Value]) -> None:
        """Pass over a function for such arguments."""
        self.running.add(scope)
        claims: dict[ast.AST, Value] = self.claims.get(scope, {})
        for _ in range(MOST_PASSES):
            frame = Frame(self, scope, claims)
            self.enter(frame, given)
            news = {origin: value for origin, value in frame.found.items() if claims.get(origin) != value}
            if not news:
                break
            claims = {**claims, **news}
        self.running.discard(scope)
        self.ever[scope] = frame.ever
        self.claims[scope] = claims

    def enter(self, frame: Frame, arguments: Sequence[Value]) -> None:
        """Bind the arguments and run the body."""
        scope = frame.scope
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            self.bind_arguments(frame, scope, arguments)
            frame.grad_off += any(switches_gradients_off(self, node) for node in scope.decorator_list)
            run(frame, scope.body)
        elif isinstance(scope, ast.Module):
            run(frame, scope.body)

    def bind_arguments(self, frame: Frame, function: FunctionNode, given: Sequence[Value]) -> None:
        """What the arguments are at the beginning."""
        signature = function.args
        positional = [*signature.posonlyargs, *signature.args]
        late = reversed(positional)
        defaults: dict[ast.arg, ast.expr | None] = dict(zip(late, reversed(signature.defaults), strict=False))
        defaults |= dict(zip(signature.kwonlyargs, signature.kw_defaults, strict=True))
        values = dict(zip(positional, given, strict=False))
        owner = self.module.classes.class_of_method(function)
        if owner is not None and positional and not is_static(function):
            values[positional[0]] = self.module.classes.instance(owner)
        if function not in self.implied:
            self.implied[function] = implied(self.module, function)
        uses = self.implied[function]
        for argument in all_arguments(signature):
            value = annotated(self.module, argument.annotation)
            if argument in {signature.vararg, signature.kwarg}:
                value = Value(Kind.TENSORS) if value.is_tensor else CONTAINER
            elif value.kind is Kind.UNKNOWN:
                value = values.get(argument, UNKNOWN)
                if value.kind is Kind.UNKNOWN and is_plain(defaults.get(argument)):
                    value = HOST
                elif value.kind is Kind.UNKNOWN and value.of is None:
                    value = uses.get(argument, value)
            frame.bind(argument.arg, value, argument)

    def outside(self, frame: Frame, name: ast.Name) -> Value:
        """A name that this pass has not bound: of a function around, or of the file."""
        lookup = self.module.scopes.lookup(name.id, name)
        if lookup is None or lookup[0] is frame.scope:
            return UNKNOWN
        scope, bindings = lookup
        if not isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            return UNKNOWN
        for node in bindings:
            is_import = isinstance(node, ast.alias)
            if is_import or (isinstance(node, ast.Name) and self.module.scopes.scope_of(node) is not scope):
                return UNKNOWN  # Other functions assign it, by `global` or `nonlocal`.
        self.analyse(scope)
        return self.ever.get(scope, {}).get(name.id, UNKNOWN)

    def is_module_call(self, call: ast.Call) -> bool:
        """Whether a call runs a module, or something unknown that is called like one."""
        function = call.func
        if not isinstance(function, ast.Name | ast.Attribute | ast.Subscript):
            return False
        if not (call.args or call.keywords) or not self.module.imports_torch:
            return False
        if last_name(function) in NEVER_CALLED_SO:
            return False
        if self.module.name_of(function) is not None or self.module.classes.definition(function) is not None:
            return False
        kind = self.value_of(function).kind
        named = MODEL_NAME.search(last_name(function) or "") is not None
        return kind is Kind.MODULE or (kind is Kind.UNKNOWN and named)


def is_plain(default: ast.expr | None) -> bool:
    """Whether a default is a number or text, not None."""
    return isinstance(default, ast.Constant) and default.value is not None
