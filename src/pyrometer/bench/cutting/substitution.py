"""Functions that do something else for a while, wherever they are called from.

The code of the function object itself is replaced, so that every way to it (names imported elsewhere, methods, properties,
partials, callbacks, the closures of decorators) leads to the substitute, and one assignment restores it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Iterable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

Substitute = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Called in place of a function, with that function as it was and the arguments."""

_TARGET = "what is called instead"


def functions_of(codes: dict[CodeType, dict[str, Any]]) -> dict[CodeType, list[FunctionType]]:
    """The functions that run these codes; none for one that is made anew in each call, or that a compiler translated.

    Args:
        codes: each with the global names of its file: there is searched what the garbage collector does not know, since it was
            frozen.
    """
    functions: dict[CodeType, list[FunctionType]] = {code: [] for code in codes}
    for referrer in gc.get_referrers(*codes) if codes else []:
        if isinstance(referrer, FunctionType) and referrer.__code__ in functions:
            functions[referrer.__code__].append(referrer)
    if gc.get_freeze_count():
        for scope in {id(scope): scope for scope in codes.values()}.values():
            for function in _functions_in(list(scope.values()), set()):
                known = functions.get(function.__code__)
                if known is not None and not any(function is other for other in known):
                    known.append(function)
    return functions


def _functions_in(values: list[Any], seen: set[int]) -> Iterator[FunctionType]:
    """Functions, methods of classes, what properties and partials call, and what decorators were put around."""
    for value in values:
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            yield value
            yield from _functions_in([_content(cell) for cell in value.__closure__ or ()], seen)
        elif isinstance(value, type):
            yield from _functions_in(list(vars(value).values()), seen)
        elif isinstance(value, (staticmethod, classmethod)):
            yield from _functions_in([value.__func__], seen)
        elif isinstance(value, property):
            yield from _functions_in([value.fget, value.fset], seen)
        elif isinstance(value, functools.partial):
            yield from _functions_in([value.func], seen)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


class Substitution:
    """Functions that call a substitute between `install` and `remove`."""

    def __init__(self, functions: Iterable[FunctionType], substitute: Substitute) -> None:
        self._codes = [
            (
                function,
                function.__code__,
                _detour(function, _Target(functools.partial(substitute, _twin(function)))),
            )
            for function in functions
        ]

    def install(self) -> None:
        """From now on the substitute is called."""
        for function, _, detour in self._codes:
            function.__code__ = detour

    def remove(self) -> None:
        """The functions do what they did."""
        for function, code, _ in self._codes:
            function.__code__ = code

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Install it for a while."""
        self.install()
        try:
            yield
        finally:
            self.remove()


def _twin(function: FunctionType) -> FunctionType:
    """The same function as another object, which keeps its code."""
    twin = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


class _Target(NamedTuple):
    """What code that was replaced calls: a constant of that code."""

    call: Callable[[tuple[Any, ...], dict[str, Any]], Any]


def _detour(function: FunctionType, target: _Target) -> CodeType:
    """Code that hands its arguments to `target`, under the names and with the free variables of the function."""
    code, of = _pattern(len(function.__code__.co_freevars)), function.__code__
    return code.replace(
        co_consts=tuple(target if constant == _TARGET else constant for constant in code.co_consts),
        co_filename=of.co_filename,
        co_name=of.co_name,
        co_qualname=of.co_qualname,
        co_firstlineno=of.co_firstlineno,
    )


@functools.cache
def _pattern(num_free: int) -> CodeType:
    """Code with so many free variables: a function takes no other than with as many as it has."""
    names = [f"v{i}" for i in range(num_free)]
    lines = [
        "def around():",
        *(f"    {name} = None" for name in names),
        "    def detour(*args, **kwargs):",
        *(f"        nonlocal {name}" for name in names),
        f"        return {_TARGET!r}.call(args, kwargs)",
        "    return detour",
    ]
    scope: dict[str, Any] = {}
    exec(compile("\n".join(lines), "<detour>", "exec"), scope)  # noqa: S102 - our own text
    code: CodeType = scope["around"]().__code__
    return code
