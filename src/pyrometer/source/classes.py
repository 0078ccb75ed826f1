"""What the classes of a file are, and what their instances have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.source.attributes import AttributeTable, attribute_tables, is_static
from pyrometer.source.index import FunctionNode
from pyrometer.source.knowledge import DATASET_BASES, MODULE_BASES, instance_of
from pyrometer.source.value import Kind, Value

if TYPE_CHECKING:
    from pyrometer.source.module import Module

Definition = FunctionNode | ast.ClassDef

DEEPEST_BASES = 8


class Classes:
    """The classes of one file."""

    __slots__ = ("all_methods", "attribute_tables", "definitions", "kinds", "method_tables", "module")

    def __init__(self, module: Module) -> None:
        self.module = module
        self.all_methods: frozenset[str] | None = None
        self.kinds: dict[ast.ClassDef, Value] = {}
        self.attribute_tables: dict[ast.ClassDef, AttributeTable] | None = None
        self.definitions: dict[ast.Name, Definition | None] = {}
        self.method_tables: dict[ast.ClassDef, dict[str, FunctionNode]] = {}

    def local_class(self, expression: ast.expr) -> ast.ClassDef | None:
        """The class of this file that a name means."""
        definition = self.definition(expression)
        return definition if isinstance(definition, ast.ClassDef) else None

    def local_function(self, expression: ast.expr) -> FunctionNode | None:
        """The function of this file that a name means."""
        definition = self.definition(expression)
        return definition if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef) else None

    def definition(self, expression: ast.expr) -> Definition | None:
        """The only `def` or `class` behind a name."""
        if not isinstance(expression, ast.Name):
            return None
        if expression not in self.definitions:
            lookup = self.module.scopes.lookup(expression.id, expression)
            binding = lookup[1][0] if lookup is not None and len(lookup[1]) == 1 else None
            if not isinstance(binding, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                binding = None
            self.definitions[expression] = binding
        return self.definitions[expression]

    def lineage(self, definition: ast.ClassDef) -> Iterator[ast.ClassDef]:
        """A class and those of its bases that this file defines, the class first."""
        queue, seen = [definition], {definition}
        while queue and len(seen) <= DEEPEST_BASES * 4:
            current = queue.pop(0)
            yield current
            for base in current.bases:
                local = self.local_class(base)
                if local is not None and local not in seen:
                    seen.add(local)
                    queue.append(local)

    def outside_bases(self, definition: ast.ClassDef) -> Iterator[str]:
        """The dotted names of the bases, own and inherited, that other files define."""
        for ancestor in self.lineage(definition):
            for base in ancestor.bases:
                generic = base.value if isinstance(base, ast.Subscript) else base
                dotted = self.module.name_of(generic)
                if dotted is not None:
                    yield dotted

    def instance(self, definition: ast.ClassDef) -> Value:
        """What calling the class makes; UNKNOWN, of that class, for ordinary ones."""
        if definition not in self.kinds:
            self.kinds[definition] = Value(Kind.UNKNOWN, of=definition)
            kind = self.kind_of(definition)
            self.kinds[definition] = Value(kind, of=definition)
        return self.kinds[definition]

    def kind_of(self, definition: ast.ClassDef) -> Kind:
        """The kind of a class's instances, by its bases."""
        for dotted in self.outside_bases(definition):
            last = dotted.rpartition(".")[2]
            if dotted in MODULE_BASES or last in ("LightningModule", "PreTrainedModel", "ScriptModule"):
                return Kind.MODULE
            if dotted in DATASET_BASES:
                return Kind.DATASET
            if dotted == "torch.optim.Optimizer" or dotted.endswith(".optimizer.Optimizer"):
                return Kind.OPTIMIZER
            if last == "Module" and dotted.startswith("."):
                return Kind.MODULE
            known = instance_of(dotted).kind
            if known is not Kind.UNKNOWN:
                return known
        return Kind.MODULE if self.looks_like_module(definition) else Kind.UNKNOWN

    def looks_like_module(self, definition: ast.ClassDef) -> bool:
        """Whether a class with bases from elsewhere has what only modules have: `forward(self, ...)` and set-up by its base."""
        forward, init = self.method(definition, "forward"), self.method(definition, "__init__")
        if (
            not self.module.imports_torch
            or forward is None
            or init is None
            or not any(self.outside_bases(definition))
        ):
            return False
        arguments = forward.args.posonlyargs + forward.args.args
        if not arguments or arguments[0].arg != "self" or len(arguments) < 2:
            return False
        return any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
            for node in ast.walk(init)
        )

    def is_module(self, definition: ast.ClassDef) -> bool:
        """Whether instances are modules of torch.nn."""
        return self.instance(definition).kind is Kind.MODULE

    def has_parameters(self, definition: ast.ClassDef) -> bool:
        """Whether a module may have parameters: it sets something up, or a base does."""
        return (
            any("__init__" in self.methods(ancestor) for ancestor in self.lineage(definition))
            or len(definition.bases) > 1
        )

    def derives_from(self, definition: ast.ClassDef, ending: str) -> bool:
        """Whether a base from another file has a name that ends so: Trainer, Function, BaseHandler."""
        return any(dotted.endswith(ending) for dotted in self.outside_bases(definition))

    def methods(self, definition: ast.ClassDef) -> dict[str, FunctionNode]:
        """The functions in a class's body by name."""
        if definition not in self.method_tables:
            self.method_tables[definition] = {
                node.name: node
                for node in definition.body
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            }
        return self.method_tables[definition]

    def method(self, definition: ast.ClassDef, name: str) -> FunctionNode | None:
        """A method by name, inherited ones of this file included."""
        for ancestor in self.lineage(definition):
            method = self.methods(ancestor).get(name)
            if method is not None:
                return method
        return None

    def attribute_table(self, definition: ast.ClassDef) -> AttributeTable:
        """What is assigned to each attribute of a class's instances, and in which methods."""
        if self.attribute_tables is None:
            self.attribute_tables = attribute_tables(self.module)
        return self.attribute_tables.get(definition, {})

    def class_of_method(self, function: ast.AST) -> ast.ClassDef | None:
        """The class that a function is a method of."""
        parent = self.module.parent(function)
        return parent if isinstance(parent, ast.ClassDef) else None

    def is_self(self, expression: ast.expr) -> ast.ClassDef | None:
        """The class whose instance a name is, if it is the first argument of a method around it, closures included."""
        if not isinstance(expression, ast.Name):
            return None
        lookup = self.module.scopes.lookup(expression.id, expression)
        if lookup is None or len(lookup[1]) != 1 or not isinstance(lookup[1][0], ast.arg):
            return None
        function = lookup[0]
        owner = self.class_of_method(function)
        if owner is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        arguments = function.args.posonlyargs + function.args.args
        if not arguments or arguments[0] is not lookup[1][0] or is_static(function):
            return None
        return owner

    def called_function(self, call: ast.Call) -> FunctionNode | None:
        """The function or method of this file that a call runs."""
        return self.function_meant(call.func)

    def function_meant(self, target: ast.expr) -> FunctionNode | None:
        """The function behind a name, `self.method` and the method of an instance of a class of this file."""
        if isinstance(target, ast.Name):
            return self.local_function(target)
        if not isinstance(target, ast.Attribute) or target.attr not in self.method_names():
            return None
        owner: ast.AST | str | None = self.is_self(target.value) or self.super_class(target.value)
        if owner is None:
            owner = self.module.value_of(target.value).of
        return self.method(owner, target.attr) if isinstance(owner, ast.ClassDef) else None

    def method_names(self) -> frozenset[str]:
        """The names of all methods of the file."""
        if self.all_methods is None:
            self.all_methods = frozenset(
                name for definition in self.module.nodes(ast.ClassDef) for name in self.methods(definition)
            )
        return self.all_methods

    def super_class(self, expression: ast.expr) -> ast.ClassDef | None:
        """The first base of this file that `super()` reaches."""
        if not isinstance(expression, ast.Call) or self.module.name_of(expression.func) != "super":
            return None
        around = self.module.class_of(expression)
        if around is None:
            return None
        return next((local for base in around.bases if (local := self.local_class(base)) is not None), None)
