"""What surrounds a place: compilation, switched-off gradients, autocast, a profiler, a test."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.source.index import FunctionNode, inside_body, last_name
from pyrometer.source.knowledge import INFERENCE, NO_GRAD
from pyrometer.source.words import words

if TYPE_CHECKING:
    from pyrometer.source.module import Module

DEEPEST_CALLS = 4
"""Calls that compilation is followed through."""

AUTOCAST = words(
    "torch.autocast torch.amp.autocast torch.cuda.amp.autocast torch.cpu.amp.autocast torch.amp.autocast_mode.autocast"
    " torch.cuda.amp.autocast_mode.autocast"
)
PROFILERS = words("torch.profiler.profile torch.autograd.profiler.profile torch.autograd.profiler.emit_nvtx")
COMPILERS = words("torch.compile torch._dynamo.optimize torch.export.export torch.compiler.compile")
SCRIPTERS = words(
    """
    torch.jit.script torch.jit.script_method torch.jit.script_if_tracing torch.jit.export torch.library.impl
    torch.library.custom_op torch.library.register_fake torch.library.impl_abstract torch.library.register_kernel
    torch.library.triton_op
    """
)
REGISTERING = words(
    "register_fake register_kernel impl_abstract register_vmap register_meta register_autograd"
)
TRACING_GUARDS = words("is_compiling is_dynamo_compiling is_exporting")
SCRIPT_GUARDS = words(
    "torch.jit.is_scripting torch.jit.is_tracing torch.onnx.is_in_onnx_export torch._jit_internal.is_scripting"
)
NO_GRAD_NAME = re.compile(r"(^|_)(no_grad|inference_mode)$")
"""Wrappers of a project's own, such as `smart_inference_mode`."""
TEST_PATH = re.compile(r"(^|/)test(s|ing)?/|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
NEAR_PARTS = 4
"""Of a long path only the end says what a file is: people keep projects in folders named test."""


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """What surrounds a place in a file."""

    compiled: bool = False
    """It runs in code that torch.compile compiles, as far as the file tells."""
    no_grad: bool = False
    inference_mode: bool = False
    autocast: bool = False
    profiled: bool = False
    """Within a block of a profiler of torch."""
    scripted: bool = False
    """In code for TorchScript, or in an operator registered with torch.library."""
    test: bool = False


class Regions:
    """The surroundings of the places of one file."""

    __slots__ = ("cache", "compiled", "module", "roots", "test_file")

    def __init__(self, module: Module) -> None:
        self.module = module
        self.cache: dict[ast.AST, Region] = {}
        self.compiled: dict[FunctionNode, bool] = {}
        self.roots: frozenset[ast.AST] | None = None
        self.test_file = TEST_PATH.search("/".join(re.split(r"[/\\]", module.path)[-NEAR_PARTS:])) is not None

    def is_test(self, function: FunctionNode | None) -> bool:
        """Whether a function, or the file, is a test."""
        return self.test_file or (function is not None and function.name.startswith("test_"))

    def region(self, node: ast.AST) -> Region:
        """The region of one node."""
        statement = self.module.statement_of(node)
        # All of a simple statement has the same surroundings; of the others, tests, items and decorators differ.
        place = (
            statement if isinstance(statement, ast.Expr | ast.Assign | ast.Return | ast.AugAssign) else node
        )
        if place not in self.cache:
            self.cache[place] = self.find(place)
        return self.cache[place]

    def find(self, node: ast.AST) -> Region:
        """Walk outwards and note what is passed."""
        marks: set[str] = {"test"} if self.test_file else set()
        eager = False
        child = node
        for above in self.module.ancestors(node):
            if isinstance(above, ast.With | ast.AsyncWith) and child in above.body:
                for item in above.items:
                    marks |= self.switched(item.context_expr)
            elif isinstance(above, ast.If) and child is not above.test:
                guarded = self.guarded(above, positive=child in above.body)
                eager |= guarded == "eager"
                marks |= {guarded} - {"eager", ""}
            elif isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef) and inside_body(child, above):
                marks |= self.of_function(above)
            child = above
        if eager:
            marks.discard("compiled")
        return Region(**dict.fromkeys(marks, True))

    def switched(self, expression: ast.expr) -> set[str]:
        """What a context manager or decorator switches."""
        call = expression if isinstance(expression, ast.Call) else None
        name = self.module.name_of(call.func if call is not None else expression)
        first = self.module.literal(call.args[0]) if call is not None and call.args else None
        if name in NO_GRAD or (name == "torch.set_grad_enabled" and first is False):
            return {"no_grad"}
        if name in INFERENCE:
            return {"inference_mode"} if first is not False else set()
        if name in AUTOCAST:
            off = call is not None and self.module.literal(self.module.keyword(call, "enabled")) is False
            return {"autocast"} if not off else set()
        if name in SCRIPTERS:
            return {"scripted"}
        if NO_GRAD_NAME.search(last_name(call.func if call is not None else expression) or "") is not None:
            return {"no_grad"}
        return {"profiled"} if name in PROFILERS else set()

    def guarded(self, branch: ast.If, *, positive: bool) -> str:
        """What the test of an `if` says about tracing in one of its branches: compiled, scripted, eager or nothing."""
        test = branch.test
        if positive and isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            said = [self.asked(part, positive=True) for part in test.values]
            return next(filter(None, said), "")
        return self.asked(test, positive=positive)

    def asked(self, test: ast.expr, *, positive: bool) -> str:
        """What one condition says about tracing where it holds, or does not."""
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            positive, test = not positive, test.operand
        for call in ast.walk(test):
            if not isinstance(call, ast.Call):
                continue
            name = self.module.name_of(call.func) or ""
            if name in SCRIPT_GUARDS:
                return "scripted" if positive else ""
            if name.rpartition(".")[2] in TRACING_GUARDS:
                return "compiled" if positive else "eager"
        return ""

    def of_function(self, function: FunctionNode) -> set[str]:
        """What the decorators of a function, its name and its callers say."""
        marks: set[str] = set()
        for decorator in function.decorator_list:
            marks |= self.switched(decorator)
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(target, ast.Attribute) and target.attr in REGISTERING:
                marks.add("scripted")
        if self.is_test(function):
            marks.add("test")
        if self.is_compiled(function):
            marks.add("compiled")
        return marks

    def is_compiled(self, function: FunctionNode, depth: int = 0) -> bool:
        """Whether a function is compiled, or called from one that is."""
        if function not in self.compiled:
            if self.roots is None:
                self.roots = frozenset(self.find_roots())
            self.compiled[function] = function in self.roots
            if not self.compiled[function] and self.roots and depth < DEEPEST_CALLS:
                self.compiled[function] = self.is_called_compiled(function, depth)
        return self.compiled[function]

    def is_called_compiled(self, function: FunctionNode, depth: int) -> bool:
        """Whether a call within compiled code runs this function."""
        callers = (self.module.function_of(call) for call in self.module.heat.calls_of(function))
        return any(
            caller is not None and caller is not function and self.is_compiled(caller, depth + 1)
            for caller in callers
        )

    def find_roots(self) -> Iterator[ast.AST]:
        """Functions that this file gives to the compiler: by decorator, by call, or as the forward of a class."""
        definitions: list[ast.AST] = [
            definition
            for definition in self.module.nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            if any(self.compiles(decorator) for decorator in definition.decorator_list)
        ]
        for call in self.module.calls(*COMPILERS):
            if call.args:
                definitions += self.meant(call.args[0])
        for call in self.module.method_calls("compile"):
            if isinstance(call.func, ast.Attribute) and self.module.name_of(call.func) is None:
                definitions += self.meant(call.func.value)
        seen: set[ast.AST] = set()
        while definitions:
            root = definitions.pop()
            if root not in seen:
                seen.add(root)
                yield root
                definitions += self.parts(root) if isinstance(root, ast.ClassDef) else []

    def meant(self, target: ast.expr) -> Iterator[ast.AST]:
        """The function, method or class behind what is given to the compiler."""
        classes = self.module.classes
        definition = classes.definition(target)
        if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield definition
        if isinstance(target, ast.Attribute):
            owner = self.module.value_of(target.value).of
            method = classes.method(owner, target.attr) if isinstance(owner, ast.ClassDef) else None
            if method is not None:
                yield method
        made = self.module.value_of(target).of
        if isinstance(made, ast.ClassDef):
            yield made

    def parts(self, definition: ast.ClassDef) -> Iterator[ast.AST]:
        """What is compiled with a class of modules: its forward, and the classes of the modules that it makes."""
        classes = self.module.classes
        forward = classes.method(definition, "forward")
        if forward is not None:
            yield forward
        for node in ast.walk(definition):
            if isinstance(node, ast.Call):
                local_class = classes.local_class(node.func)
                if local_class is not None and classes.is_module(local_class):
                    yield local_class

    def compiles(self, decorator: ast.expr) -> bool:
        """Whether a decorator is torch.compile, with arguments or without, or partial."""
        if isinstance(decorator, ast.Call):
            name = self.module.name_of(decorator.func)
            if name == "functools.partial" and decorator.args:
                return self.module.name_of(decorator.args[0]) in COMPILERS
            return name in COMPILERS
        return self.module.name_of(decorator) in COMPILERS
