"""Expressions whose value is the same in each step: made of sizes, constants, settings and buffers, and of nothing else.

A name of a function is fixed where all that it is given in it is. An argument is where its annotation is a number's, or all calls that are
made in each step pass something fixed. Shapes count as fixed: they seldom change, and a table for the largest one serves all.
"""

from __future__ import annotations

import ast

from pyrometer.rules.rule import Module
from pyrometer.source.index import FunctionNode, last_name
from pyrometer.source.value import PARAMETER, Kind
from pyrometer.source.words import words

DEEPEST = 4
"""Functions within functions that are looked into."""

OF_SHAPE = words(
    "shape device dtype ndim is_cuda training requires_grad size dim numel ndimension element_size layout"
)
"""Attributes and methods of a tensor that tell nothing of its values."""

LIKE = words(
    "zeros_like ones_like full_like empty_like to type_as expand_as view_as reshape_as "
    "is_floating_point finfo"
)
"""Functions and methods that take of a tensor its shape, type or place."""

PACKAGES = ("torch.", "math.", "numpy.", "itertools.", "functools.", "operator.")
RANDOM = words(
    "rand randn randint randperm normal bernoulli multinomial poisson random uniform choice shuffle dropout alpha_dropout feature_dropout "
    "empty empty_like new_empty default_rng manual_seed exponential_ bernoulli_ normal_ uniform_ random_ load"
)
"""Functions whose results differ each time."""

CHANGING = words(
    "append appendleft extend insert update setdefault add remove discard pop popleft popitem clear sort reverse put"
)
"""Methods that change what they are called on."""

BUILTINS = words(
    "range int float bool max min abs round len sum list tuple enumerate zip reversed sorted slice pow divmod str"
)
NUMBERS = words("int float bool str device dtype")
"""Annotations of what is no tensor."""


class Fixed:
    """What is the same in each step, in one file.

    `trained`: parameters change from step to step; where they do not, what is made of them alone is fixed, too.
    `ran`: lines that are known to run in each step, beside those of which the source tells.
    """

    def __init__(self, module: Module, *, trained: bool = True, ran: frozenset[int] = frozenset()) -> None:
        self.module = module
        self.trained = trained
        self.ran = ran
        self.names: dict[FunctionNode, frozenset[str]] = {}

    def statements(self, function: FunctionNode) -> list[ast.stmt]:
        """The statements of a function that compute something fixed with tensors, in the order of the text.

        Where there are some, with those of its loops that compute what these are made of; of what has a body it is the head.
        """
        names = self.names_in(function)
        inner = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.stmt) and self.module.function_of(node) is function
        ]
        told = [node for node in inner if self._is_fixed(node, names)]
        tensors = [node for node in told if self._makes_tensors(node)]
        return [node for node in told if node in tensors or self.module.loops_around(node)] if tensors else []

    def names_in(self, function: FunctionNode, depth: int = 0) -> frozenset[str]:
        """The names of a function that stand for something fixed."""
        if function not in self.names:
            self.names[function] = frozenset()  # for what calls itself
            self.names[function] = self._names_in(function, depth)
        return self.names[function]

    def holds(self, node: ast.AST | None, names: frozenset[str], depth: int = 0) -> bool:
        """Whether an expression is fixed, given the names that are."""
        match node:
            case None | ast.Constant():
                fixed = True
            case ast.Lambda() | ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
                fixed = False
            case ast.Name():
                fixed = node.id in names or self._is_global(node)
            case ast.Attribute():
                fixed = node.attr in OF_SHAPE or self._attribute(node, names, depth)
            case ast.Call():
                fixed = self._call(node, names, depth)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                fixed = self._comprehension(node, names, depth)
            case _:
                parts = (
                    child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr | ast.keyword)
                )
                fixed = all(self.holds(part, names, depth) for part in parts)
        return fixed

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        names: frozenset[str],
        depth: int,
    ) -> bool:
        for part in node.generators:
            if not self.holds(part.iter, names, depth):
                return False
            names |= _bound(part.target)
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return all(self.holds(value, names, depth) for value in values)

    def _is_global(self, node: ast.Name) -> bool:
        """A module, a function, or what the top level assigns once, in no loop, and nothing changes."""
        if self.module.name_of(node) is not None or self.module.classes.definition(node) is not None:
            return True
        lookup = self.module.scopes.lookup(node.id, node)
        if lookup is None or not isinstance(lookup[0], ast.Module) or len(lookup[1]) != 1:
            return False
        learns = self.trained and self.module.value_of(node).kind in {Kind.MODULE, Kind.OPTIMIZER}
        repeated = learns or self.module.loops_around(lookup[1][0])
        return not repeated and not any(map(self._changes, self.module.uses(node.id, node)))

    def _attribute(self, node: ast.Attribute, names: frozenset[str], depth: int) -> bool:
        owner = self.module.classes.is_self(node.value)
        if owner is None:
            return self.holds(node.value, names, depth)
        given = [
            assigned
            for ancestor in self.module.classes.lineage(owner)
            for assigned in self.module.classes.attribute_table(ancestor).get(node.attr, ())
        ]
        if self._is_changed(node.attr):
            return False
        is_buffer = any(
            isinstance(value, ast.Call) and last_name(value.func) == "register_buffer" for value, _ in given
        )
        value = self.module.value_of(node)
        is_weight = not self.trained and (value.kind is Kind.MODULE or value.of == PARAMETER)
        return is_buffer or is_weight or value.kind in {Kind.HOST, Kind.UNKNOWN, Kind.CONTAINER}

    def _is_changed(self, attribute: str) -> bool:
        """Whether the file changes what an attribute of this name holds: `self.x[0] = …`, `self.x.append(…)`, `net.x = …`."""
        for node in self.module.nodes(ast.Attribute):
            if node.attr != attribute:
                continue
            if self._changes(node):
                return True
            function = self.module.function_of(node)
            if isinstance(node.ctx, ast.Store) and (function is None or function.name != "__init__"):
                return True
        return False

    def _changes(self, node: ast.expr) -> bool:
        """Whether a place that reads something changes what is in it."""
        above = self.module.parent(node)
        if isinstance(above, ast.Subscript):
            return isinstance(above.ctx, ast.Store | ast.Del)
        return isinstance(above, ast.Attribute) and (above.attr.endswith("_") or above.attr in CHANGING)

    def _call(self, call: ast.Call, names: frozenset[str], depth: int) -> bool:
        called, subject = last_name(call.func) or "", _subject(call)
        name = self.module.name_of(call.func) or ""
        if called in RANDOM or called in (OF_SHAPE if subject is not None else {"len"}):
            return called not in RANDOM
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if called.startswith("new_"):
            return all(self.holds(argument, names, depth) for argument in arguments)
        if called in LIKE:
            return self._like(name, subject, arguments, names, depth)
        if not all(self.holds(argument, names, depth) for argument in arguments):
            return False
        function = self.module.classes.called_function(call)
        if function is not None:
            return depth < DEEPEST and self._gives_fixed(function, depth + 1)
        is_known = name.startswith(PACKAGES) or (subject is None and called in BUILTINS)
        return is_known or (subject is not None and self._method(subject, names, depth))

    def _method(self, subject: ast.expr, names: frozenset[str], depth: int) -> bool:
        """Whether a method of something fixed is called; those of the object itself are in other files."""
        return self.module.classes.is_self(subject) is None and self.holds(subject, names, depth)

    def _like(
        self,
        name: str,
        subject: ast.expr | None,
        arguments: list[ast.expr],
        names: frozenset[str],
        depth: int,
    ) -> bool:
        """`torch.zeros_like(x)` and `x.new_zeros(n)` are fixed whatever `x` is, `t.to(x)` where `t` is."""
        if name.startswith("torch."):
            return all(self.holds(argument, names, depth) for argument in arguments[1:])
        if subject is None:
            return False
        return self.holds(subject, names, depth)

    def _gives_fixed(self, function: FunctionNode, depth: int) -> bool:
        """Whether a function returns something fixed if it is given such."""
        names = self._closed(function, _arguments(function), depth)
        returns = [node for node in ast.walk(function) if isinstance(node, ast.Return | ast.Yield)]
        return bool(returns) and all(self.holds(node.value, names, depth) for node in returns)

    def _names_in(self, function: FunctionNode, depth: int) -> frozenset[str]:
        return self._closed(function, self._fixed_arguments(function, depth), depth)

    def _closed(self, function: FunctionNode, arguments: frozenset[str], depth: int) -> frozenset[str]:
        """The names that stay fixed when all that the function gives them is looked at."""
        given: dict[str, list[ast.AST]] = {}
        for node in ast.walk(function):
            for target, value in _assigned(node):
                for name in _bound(target):
                    given.setdefault(name, []).append(value)
        names = (frozenset(given) & _made_in(function)) - (_arguments(function) - arguments) | arguments
        while True:
            kept = frozenset(
                name
                for name in names
                if (name in arguments or name in given)
                and all(self.holds(value, names, depth) for value in given.get(name, ()))
            )
            if kept == names:
                return names
            names = kept

    def _fixed_arguments(self, function: FunctionNode, depth: int) -> frozenset[str]:
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        said = {
            argument.arg
            for argument in arguments
            if argument.annotation is not None and last_name(argument.annotation) in NUMBERS
        }
        every = self.module.heat.calls_of(function) if depth < DEEPEST else ()
        calls = [call for call in every if self._runs_in_steps(call)]
        first = 1 if self.module.classes.class_of_method(function) is not None else 0
        for number, argument in enumerate(arguments[first:]):
            passed = [_passed(call, number, argument.arg) for call in calls]
            if calls and all(
                self._passes_fixed(call, value, depth + 1) for call, value in zip(calls, passed, strict=True)
            ):
                said.add(argument.arg)
        return frozenset(said)

    def _runs_in_steps(self, call: ast.Call) -> bool:
        """Whether it is none of the set-up."""
        function = self.module.function_of(call)
        ran = call.lineno in self.ran and (function is None or function.name != "__init__")
        return ran or self.module.hot(call) is not None

    def _passes_fixed(self, call: ast.Call, value: ast.expr | None, depth: int) -> bool:
        caller = self.module.function_of(call)
        names = self.names_in(caller, depth) if caller is not None else frozenset()
        return self.holds(value, names, depth)

    def _is_fixed(self, node: ast.stmt, names: frozenset[str]) -> bool:
        """Whether a statement does the same in each step; what only names something is none."""
        match node:
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                is_kept = all(_bound(target) and _bound(target) <= names for target in targets)
                return is_kept and node.value is not None and self.holds(node.value, names)
            case ast.Return() | ast.Expr():
                return node.value is not None and self.holds(node.value, names)
            case ast.For():
                return self.holds(node.iter, names)
            case _:
                return False

    def _makes_tensors(self, node: ast.stmt) -> bool:
        return not isinstance(node, ast.For) and any(
            isinstance(part, ast.Call | ast.BinOp)
            and self.module.value_of(part).kind in {Kind.TENSOR, Kind.TENSORS}
            for part in ast.walk(node)
        )


def _subject(call: ast.Call) -> ast.expr | None:
    """What a method is called on."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _bound(target: ast.AST) -> frozenset[str]:
    """The names that a target binds or changes."""
    if isinstance(target, ast.Tuple | ast.List):
        return frozenset().union(*map(_bound, target.elts))
    root = _root(target)
    return frozenset() if root is None else frozenset({root})


def _root(target: ast.AST) -> str | None:
    while isinstance(target, ast.Subscript | ast.Starred):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _assigned(node: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """What a statement gives to which targets; in-place methods give their arguments to what they change."""
    pairs: list[tuple[ast.AST, ast.AST]] = []
    match node:
        case ast.Assign():
            pairs = [(target, node.value) for target in node.targets]
        case ast.AugAssign() | ast.NamedExpr():
            pairs = [(node.target, node.value)]
        case ast.AnnAssign() if node.value is not None:
            pairs = [(node.target, node.value)]
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            pairs = _walked(node.target, node.iter)
        case ast.withitem() if node.optional_vars is not None:
            pairs = [(node.optional_vars, ast.Await(value=node.context_expr))]
        case ast.Call(func=ast.Attribute(value=subject, attr=name)) if name.endswith("_") or name in {
            "append",
            "extend",
        }:
            pairs = [(subject, argument) for argument in node.args]
    return pairs


def _walked(target: ast.expr, over: ast.expr) -> list[tuple[ast.AST, ast.AST]]:
    """What a loop gives to which targets: of `zip` and `enumerate` each to its own."""
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and isinstance(target, ast.Tuple):
        parts = {"zip": over.args, "enumerate": [ast.Constant(0), *over.args[:1]]}.get(over.func.id, [])
        if len(parts) == len(target.elts):
            return [*zip(target.elts, parts, strict=True)]
    return [(target, over)]


def _made_in(function: FunctionNode) -> frozenset[str]:
    """The names that a function makes itself: what it only changes in place is a state of something around it."""
    shared = {
        name
        for node in ast.walk(function)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    made = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return frozenset(made - shared) | _arguments(function)


def _arguments(function: FunctionNode) -> frozenset[str]:
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return frozenset(argument.arg for argument in every)


def _passed(call: ast.Call, number: int, name: str) -> ast.expr | None:
    """What a call passes for an argument; none for its default."""
    if number < len(call.args):
        return call.args[number]
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
