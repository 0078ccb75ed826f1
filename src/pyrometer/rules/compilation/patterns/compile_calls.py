"""Where a file compiles: calls of torch.compile and of what traces, decorators included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from pyrometer.place import Place
from pyrometer.rules.rule import Case, Module

COMPILE = "torch.compile"
TRACERS = ("torch.jit.trace", "torch.jit.trace_module", "torch.jit.script", "torch.export.export")
PARTIALS = ("functools.partial",)

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class CompileCall:
    """One place at which something is compiled.

    Args:
        module: the file.
        node: the call, or the bare decorator.
        name: of the function that is called: `torch.compile`, `torch.jit.trace`.
    """

    def __init__(self, module: Module, node: ast.expr, name: str) -> None:
        self.module = module
        self.node = node
        self.name = name

    @cached_property
    def decorated(self) -> Definition | None:
        """What it decorates; `None` for a call like any other."""
        parent = self.module.parent(self.node)
        if not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return None
        return parent if self.node in parent.decorator_list else None

    @property
    def runs(self) -> ast.AST:
        """What is run when this is: the call, or the definition that is decorated."""
        return self.decorated or self.node

    @property
    def target(self) -> ast.expr | None:
        """What is compiled; `None` for a decorator."""
        if not isinstance(self.node, ast.Call) or self.decorated is not None:
            return None
        return self.node.args[0] if self.node.args else self.module.keyword(self.node, "model")

    def keyword(self, name: str) -> ast.expr | None:
        """The value of a keyword of the call."""
        return self.module.keyword(self.node, name) if isinstance(self.node, ast.Call) else None

    def option(self, name: str) -> object:
        """The constant that a keyword is given; `MISSING` where it is none, `None` where the keyword is not there."""
        value = self.keyword(name)
        return None if value is None else self.module.literal(value)

    @property
    def passes_unknown(self) -> bool:
        """Whether keywords come from elsewhere: `torch.compile(model, **settings)`."""
        return isinstance(self.node, ast.Call) and any(keyword.arg is None for keyword in self.node.keywords)

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(file=self.module.path, line=self.node.lineno)


def compile_calls(module: Module, *names: str) -> Iterator[CompileCall]:
    """The places of a file that call one of these functions, `torch.compile` unless given; in the order of the text.

    `functools.partial(torch.compile, …)` as a decorator is one too.
    """
    wanted = names or (COMPILE,)
    if not mentions_compile(module) and not any(name.rpartition(".")[2] in module.text for name in names):
        return
    calls = [CompileCall(module, call, module.name_of(call.func) or "") for call in module.calls(*wanted)]
    definitions: list[Definition] = [
        *module.nodes(ast.FunctionDef),
        *module.nodes(ast.AsyncFunctionDef),
        *module.nodes(ast.ClassDef),
    ]
    for definition in definitions:
        for decorator in definition.decorator_list:
            name = _bare(module, decorator)
            if name in wanted:
                calls.append(CompileCall(module, decorator, name))
    yield from sorted(calls, key=lambda call: (call.node.lineno, call.node.col_offset))


def mentions_compile(module: Module) -> bool:
    """Whether the text of a file holds what may have to do with torch.compile: most files are told from that alone."""
    text = module.text
    return (
        text.count(".compile") > text.count("re.compile")
        or "_dynamo" in text
        or "import compile" in text
        or ", compile" in text
    )


def only_call(case: Case) -> CompileCall | None:
    """The one place at which the user's files call torch.compile; `None` where there are several, or none is known."""
    calls = [call for module in case.modules for call in compile_calls(module)]
    return calls[0] if len(calls) == 1 else None


def compiled_at(case: Case) -> Place:
    """Where the program is compiled, as far as that is known: the only call of torch.compile, else the model's class."""
    call = only_call(case)
    if call is not None:
        return call.place
    program = case.program
    if program is not None and program.model_file is not None:
        return Place(file=program.model_file, line=program.model_line)
    return Place()


def _bare(module: Module, decorator: ast.expr) -> str | None:
    """The name of a decorator without a call, or of what a partial one calls."""
    if isinstance(decorator, ast.Call):
        is_partial = module.name_of(decorator.func) in PARTIALS and bool(decorator.args)
        return module.name_of(decorator.args[0]) if is_partial else None
    return module.name_of(decorator)
