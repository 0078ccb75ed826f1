"""Which module of the user's model each node comes from.

Dynamo names parameters and buffers by their path, and AOTAutograd says which of its inputs stands for which of Dynamo's. So an
operation that reads a parameter belongs to the module that owns it. What else stands on the same line of the user's program
belongs to the module that calls that one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from pyrometer.compiler.graphs.record import GraphNode

_OWNED = re.compile(
    r"[LG]_+(?P<root>.+?)_+(?P<path>(?:modules_.+?_)*?)(?P<kind>parameters|buffers)_(?P<name>.+?)_*$"
)


class Tensor(NamedTuple):
    """What an input of a graph is."""

    role: str
    module: str = ""
    name: str = ""
    root: str = ""
    """Dynamo's name of the local or global variable that holds the model."""

    @property
    def qualified(self) -> str:
        """Name of the parameter or buffer within the model."""
        return ".".join(part for part in (self.module, self.name) if part)


def read_input(target: str) -> Tensor:
    """What Dynamo's name of an input says.

    >>> read_input("L_self_modules_blocks_modules_0_modules_qkv_parameters_weight_")
    Tensor(role='parameter', module='blocks.0.qkv', name='weight', root='self')
    >>> read_input("L_self_buffers_step_")[:3], read_input("L_x_").role
    (('buffer', '', 'step'), 'input')
    """
    match = _OWNED.match(target)
    if match is None:
        return Tensor("input")
    path = match["path"].strip("_").removeprefix("modules_")
    return Tensor(match["kind"][:-1], path.replace("_modules_", "."), match["name"], match["root"])


def with_roots(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same with the variable in front of the module where there are several models, such as teacher and student."""
    if len({tensor.root for tensor in tensors if tensor.root}) < 2:
        return list(tensors)
    return [
        tensor._replace(module=f"{tensor.root}.{tensor.module}".rstrip(".")) if tensor.root else tensor
        for tensor in tensors
    ]


def common_module(modules: Iterable[str]) -> str:
    """The innermost module that holds all of some.

    >>> common_module(["blocks.0.qkv", "blocks.0.out"]), common_module(["a", "b"])
    ('blocks.0', '')
    """
    paths = [module.split(".") if module else [] for module in modules]
    if not paths:
        return ""
    shared = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)


def with_modules(nodes: Sequence[GraphNode], tensors: Mapping[str, Tensor]) -> list[GraphNode]:
    """The same nodes with their modules and the roles of inputs.

    Args:
        nodes: of one graph, in its order.
        tensors: what its inputs are, by their names.
    """
    owners = _owners(nodes, tensors)
    callers = _callers(nodes, owners)
    unknown = Tensor("")
    return [
        replace(
            node,
            module=node.module
            or owners.get(node.name)
            or (callers.get(node.name, "") if node.op == "call" else ""),
            role=tensors.get(node.name, unknown).role,
            parameter=tensors.get(node.name, unknown).qualified,
        )
        for node in nodes
    ]


def _owners(nodes: Sequence[GraphNode], tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Modules of parameters, of what is derived from them alone (a transpose), and of the operations that read either."""
    owners = {
        name: tensor.module for name, tensor in tensors.items() if tensor.role in {"parameter", "buffer"}
    }
    constant = set(owners)
    for node in nodes:
        if node.op != "call" or not node.inputs:
            continue
        read = [owners[name] for name in node.inputs if name in constant]
        if read:
            owners[node.name] = common_module(read)
            if all(name in constant for name in node.inputs):
                constant.add(node.name)
        elif node.target == "operator.getitem" and node.inputs[0] in owners:
            owners[node.name] = owners[node.inputs[0]]
    return owners


def _callers(nodes: Sequence[GraphNode], owners: Mapping[str, str]) -> dict[str, str]:
    """The module whose code each line is; a line that calls no module is as the lines of its function around it."""
    calls = [node for node in nodes if node.op == "call" and node.file]
    if not calls:
        return _between(nodes, owners)
    runs = [list(run) for _, run in groupby(calls, lambda node: (node.file, node.line, node.function))]
    modules = [_caller(run, owners) for run in runs]
    return {
        node.name: module
        for run, module in zip(runs, _filled(runs, modules), strict=True)
        for node in run
        if module is not None
    }


def _between(nodes: Sequence[GraphNode], owners: Mapping[str, str]) -> dict[str, str]:
    """Without any line, as for code that stands in no file: what the modules before and after an operation have in common."""
    calls = [node for node in nodes if node.op == "call"]
    known = [owners.get(node.name) for node in calls]
    before, after = _latest([0] * len(calls), known), _latest([0] * len(calls), known[::-1])[::-1]
    return {
        node.name: common_module([first, last])
        for node, first, last in zip(calls, before, after, strict=True)
        if first is not None and last is not None
    }


def _caller(run: Sequence[GraphNode], owners: Mapping[str, str]) -> str | None:
    called = {owners[node.name] for node in run if node.name in owners}
    return common_module(_outer(module) for module in called) if called else None


def _outer(module: str) -> str:
    """The module whose code calls a module. Numbered ones stand in a container, which has no code of the user's."""
    outer, _, name = module.rpartition(".")
    while name.isdigit():
        outer, _, name = outer.rpartition(".")
    return outer


def _filled(runs: Sequence[Sequence[GraphNode]], modules: Sequence[str | None]) -> list[str | None]:
    """A line that calls no module: what the nearest such lines of its function before and after it have in common."""
    functions = [(run[0].file, run[0].function) for run in runs]
    before = _latest(functions, modules)
    after = _latest(functions[::-1], modules[::-1])[::-1]
    filled = []
    for module, earlier, later in zip(modules, before, after, strict=True):
        around = [found for found in (earlier, later) if found is not None]
        filled.append(common_module(around) if module is None and around else module)
    nearest = zip(_latest([0] * len(runs), filled), _latest([0] * len(runs), filled[::-1])[::-1], strict=True)
    # What is left is a function of its own, such as a lambda: it belongs where both sides agree.
    return [
        sides[0] if module is None and sides[0] == sides[1] else module
        for module, sides in zip(filled, nearest, strict=True)
    ]


def _latest(keys: Sequence[object], modules: Sequence[str | None]) -> list[str | None]:
    """For each place the last module of its key up to there."""
    last: dict[object, str] = {}
    found = []
    for key, module in zip(keys, modules, strict=True):
        if module is not None:
            last[key] = module
        found.append(last.get(key))
    return found
