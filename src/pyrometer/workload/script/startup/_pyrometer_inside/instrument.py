"""Code that reports its begin and end, put into an existing Python function.

The function stays the same object, with the same name, file and line numbers, and no frame is added: tracebacks,
`warnings`' stack levels, `inspect`, pickling and TorchDynamo's checks of identity all see what they saw before. Only
its code object is exchanged, for one compiled from its own source with a guard around the body.
"""

from __future__ import annotations

import ast
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FunctionType
    from typing import Any, TypeAlias

    Switch: TypeAlias = Callable[[bool], None]

OBSERVER = "_pyrometer_observer"

# Nested in what is already being timed, or traced by the compiler, the body runs as it stands.
_GUARD = f"""
if {OBSERVER}.inside or torch.compiler.is_compiling() or not {OBSERVER}.begin(KIND, SUBJECT):
    ...
else:
    try:
        ...
    except StopIteration:
        {OBSERVER}.exhausted = True
        raise
    finally:
        {OBSERVER}.end(KIND + 1)
"""
_FUTURE_FLAGS = 0x1FF0000


class CannotInstrumentError(Exception):
    """The function is not what its source says, or has no source."""


def instrument(function: FunctionType, kind: int, observer: Any) -> Switch:
    """Report the outermost calls of a function to `observer.begin(kind, first argument)` and `end(kind + 1)`.

    Returns:
        A switch, off at first.

    Raises:
        CannotInstrumentError: the source is missing or does not compile to the function's code.
    """
    original = function.__code__
    plain, guarded = _compile_both(function, kind)
    if _outline(plain) != _outline(original):
        raise CannotInstrumentError(f"{function.__qualname__} is not what its source says")

    def switch(on: bool) -> None:
        if on:
            function.__globals__[OBSERVER] = observer
        function.__code__ = guarded if on else original
        if not on:
            function.__globals__.pop(OBSERVER, None)

    return switch


def _outline(code: CodeType) -> tuple[Any, ...]:
    """What two compilations of the same source share; the bytecode may differ, as it depends on the rest of the file."""
    constants = [constant for constant in code.co_consts if not isinstance(constant, type(code))]
    return code.co_name, code.co_firstlineno, code.co_names, code.co_varnames, code.co_freevars, constants


def _compile_both(function: FunctionType, kind: int) -> tuple[CodeType, CodeType]:
    try:
        lines, first_line = inspect.getsourcelines(function)
        if "torch" not in function.__globals__ or function.__closure__:
            raise CannotInstrumentError(f"{function.__qualname__} lacks torch or has a closure")
        plain = _compile(function, _parse(function, lines, first_line))
        tree = _parse(function, lines, first_line)
        _guard(_definition(tree), kind)
        return plain, _compile(function, tree)
    except (OSError, SyntaxError, TypeError, ValueError) as error:
        raise CannotInstrumentError(f"{function.__qualname__}: {error}") from error


def _parse(function: FunctionType, lines: list[str], first_line: int) -> ast.Module:
    """The function's syntax tree at its own lines and columns, inside a class of the right name for a method."""
    names = function.__qualname__.split(".")
    header = f"class {names[-2]}:\n" if len(names) > 1 else "\n"
    tree = ast.parse(header + "".join(lines))
    ast.increment_lineno(tree, first_line - 2)
    return tree


def _definition(tree: ast.Module) -> ast.FunctionDef:
    return next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _guard(definition: ast.FunctionDef, kind: int) -> None:
    body = definition.body
    docstring = body[:1] if ast.get_docstring(definition, clean=False) is not None else []
    body = body[len(docstring) :]
    subject = definition.args.args[0].arg
    text = _GUARD.replace("KIND", str(kind)).replace("SUBJECT", subject)
    guard = ast.parse(text).body[0]
    for node in ast.walk(guard):
        ast.copy_location(node, body[0])
    assert isinstance(guard, ast.If)
    attempt = guard.orelse[0]
    assert isinstance(attempt, ast.Try)
    guard.body = body
    attempt.body = body
    definition.body = [*docstring, guard]


def _compile(function: FunctionType, tree: ast.Module) -> CodeType:
    code = function.__code__
    module = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE_FLAGS, dont_inherit=True)
    found = _find(module, code.co_name)
    if found is None:
        raise CannotInstrumentError(f"{function.__qualname__}: no definition in its source")
    return found


def _find(code: CodeType, name: str) -> CodeType | None:
    inner = [constant for constant in code.co_consts if isinstance(constant, type(code))]
    here = next((each for each in inner if each.co_name == name), None)
    return here or next(filter(None, (_find(each, name) for each in inner)), None)
