"""What a call returns, by what is called: something imported, a class or function of the file, a method, a module."""

from __future__ import annotations

import ast
from collections.abc import Callable

from pyrometer.source.builtin_calls import NUMBERS, builtin_call
from pyrometer.source.called import Called
from pyrometer.source.frame import Frame
from pyrometer.source.knowledge import LOADER_NAME, MODEL_NAME, instance_of
from pyrometer.source.module_calls import by_name, module_call, module_method, parts_of_module
from pyrometer.source.tensor_methods import (
    learn_from_method,
    method_of_unknown,
    moved_to,
    tensor_method,
)
from pyrometer.source.torch_calls import operation, torch_call
from pyrometer.source.torch_names import MODULE_FACTORIES, OPERATIONS
from pyrometer.source.value import (
    ARRAY,
    BATCH,
    CONTAINER,
    HOST,
    LOADER,
    MODULE,
    UNKNOWN,
    Kind,
    Value,
    element_of,
    holding,
    yielding,
)

Evaluate = Callable[[Frame, ast.expr], Value]
ITERATING = frozenset(["enumerate", "zip", "iter", "tqdm", "track", "islice", "cycle"])


def call_value(frame: Frame, node: ast.Call, evaluate: Evaluate) -> Value:
    """The value of a call; its arguments are looked at as well."""
    function = node.func
    base = evaluate(frame, function.value) if isinstance(function, ast.Attribute) else UNKNOWN
    arguments = [evaluate(frame, argument) for argument in node.args]
    keywords = {keyword.arg: evaluate(frame, keyword.value) for keyword in node.keywords}
    called = Called(frame, node, arguments, keywords)
    dotted = frame.flow.module.name_of(function)
    if dotted is None and isinstance(function, ast.Name) and function.id == "tqdm":
        dotted = "tqdm.tqdm"  # Whatever it was imported from.
    if dotted is not None:
        return named_call(called, dotted)
    if isinstance(function, ast.Attribute):
        return method_call(called, function.attr, base)
    local = frame.flow.module.classes.definition(function)
    if isinstance(local, ast.ClassDef):
        return frame.flow.module.classes.instance(local)
    if isinstance(local, ast.FunctionDef | ast.AsyncFunctionDef):
        return frame.flow.summaries.returned(called, local, bound=False)
    return instance_call(called, function, evaluate(frame, function))


def instance_call(called: Called, function: ast.expr, value: Value) -> Value:
    """A call of something that is no function by name: a module, or what is named like one."""
    if value.kind is Kind.MODULE:
        return module_call(called, value)
    if value.kind is Kind.UNKNOWN and value.of is None and isinstance(function, ast.Name):
        if MODEL_NAME.search(function.id) and called.inputs and called.module.imports_torch:
            called.frame.claim(value, MODULE)
        return by_name(called, function.id)
    return UNKNOWN


def named_call(called: Called, dotted: str) -> Value:
    """A call of something imported, or of a builtin."""
    if dotted.startswith("torch."):
        return torch_call(called, dotted)
    if dotted.rpartition(".")[2] in ITERATING:
        see_loaders(called)
    found = builtin_call(called, dotted)
    if found.kind is not Kind.UNKNOWN or dotted in NUMBERS:
        return found
    known = instance_of(dotted)
    if known.kind is not Kind.UNKNOWN:
        return known
    if dotted in MODULE_FACTORIES:
        return MODULE
    home, _, last = dotted.rpartition(".")
    if home.startswith(".") and home.endswith("functional") and last in OPERATIONS:
        return operation(called, last, called.inputs)  # Within torch itself.
    return UNKNOWN


def see_loaders(called: Called) -> None:
    """What is iterated and called like a loader is one, in a file that uses torch."""
    for number, (expression, value) in enumerate(zip(called.node.args, called.arguments, strict=True)):
        called.arguments[number] = as_iterable(called.frame, expression, value)


def as_iterable(frame: Frame, expression: ast.expr, value: Value) -> Value:
    """The value of what is iterated, where its name says more than is known."""
    if value.kind is not Kind.UNKNOWN or value.of is not None:
        return value
    name = expression.attr if isinstance(expression, ast.Attribute) else getattr(expression, "id", "")
    if not LOADER_NAME.search(name) or not frame.flow.module.imports_torch:
        return value
    frame.claim(value, LOADER)
    return LOADER


def method_call(called: Called, method: str, base: Value) -> Value:
    """A call of a method, by the kind of what it is called on."""
    learn_from_method(called, method, base)
    if isinstance(base.of, ast.ClassDef):
        return own_method(called, base.of, method, base)
    return METHODS_OF.get(base.kind, no_method)(called, method, base)


def own_method(called: Called, definition: ast.ClassDef, method: str, base: Value) -> Value:
    """A method of a class of this file, or an attribute of it that is called like one."""
    function = called.module.classes.method(definition, method)
    if function is not None:
        return called.frame.flow.summaries.returned(called, function, bound=True)
    held = called.frame.flow.instances.attribute(definition, method)
    if held.kind is Kind.MODULE:
        return module_call(called, held)
    if base.kind is Kind.MODULE and held.kind is Kind.UNKNOWN:
        found = module_method(called, method, base)
        if found.kind is not Kind.UNKNOWN:
            return found
    return by_name(called, method)


def no_method(_called: Called, _method: str, _base: Value) -> Value:
    """Of kinds whose methods return nothing that rules tell apart."""
    return UNKNOWN


def tensors_method(called: Called, method: str, base: Value) -> Value:
    """A method of a list, dict or record of tensors."""
    if method in {"to", "cuda", "cpu", "pin_memory"}:
        device = base.device if method == "pin_memory" else moved_to(called, method, base.device)
        return Value(Kind.TENSORS, base.graph, device, base.of)
    if method in {"values", "items"}:
        element = element_of(base) if base.of != BATCH else UNKNOWN
        return yielding(element if method == "values" else holding([HOST, element]))
    if method in {"pop", "get"} and base.of != BATCH:
        return Value(Kind.TENSOR, base.graph, base.device)
    return CONTAINER if method == "keys" else UNKNOWN


def scaler_method(called: Called, method: str, _base: Value) -> Value:
    """A method of a GradScaler."""
    return called.first if method == "scale" else UNKNOWN


def array_method(_called: Called, method: str, _base: Value) -> Value:
    """A method of an array of numpy."""
    return HOST if method in {"item", "tolist"} else ARRAY


def host_method(_called: Called, method: str, _base: Value) -> Value:
    """A method of a number or text."""
    return CONTAINER if method in {"split", "rsplit", "splitlines", "partition"} else HOST


def container_method(_called: Called, method: str, base: Value) -> Value:
    """A method of a list or dict."""
    return base if method == "copy" else UNKNOWN


def unknown_method(called: Called, method: str, _base: Value) -> Value:
    """A method of something unknown: one that only tensors or modules have, or a model held by something."""
    found = method_of_unknown(called, method)
    if found.kind is Kind.UNKNOWN:
        found = parts_of_module(method) if method not in {"modules", "children"} else UNKNOWN
    return found if found.kind is not Kind.UNKNOWN else by_name(called, method)


METHODS_OF: dict[Kind, Callable[[Called, str, Value], Value]] = {
    Kind.TENSOR: tensor_method,
    Kind.TENSORS: tensors_method,
    Kind.MODULE: module_method,
    Kind.SCALER: scaler_method,
    Kind.ARRAY: array_method,
    Kind.HOST: host_method,
    Kind.CONTAINER: container_method,
    Kind.UNKNOWN: unknown_method,
}
