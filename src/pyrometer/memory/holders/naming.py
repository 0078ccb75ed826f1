"""From a path through memory to the expression that a user would write.

A path has many hops that nobody writes: `__dict__`, cells, bound methods, the tables of `nn.Module`. Each is read by a small
function of the owner's type, which adds to the expression, starts it anew (a closure's variable needs nothing before it),
or stays silent.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from pyrometer.memory.holders import containers, kinds
from pyrometer.memory.holders.kinds import Kind
from pyrometer.memory.holders.owners import class_place, hop_text, maker_of, place_of, type_text
from pyrometer.memory.holders.record import Holder
from pyrometer.memory.holders.roots import Root, frame_locals, shown_file
from pyrometer.memory.holders.search import Hop
from pyrometer.memory.holders.text import key_text, name_text

_TABLES = ("_modules", "_parameters", "_buffers")
_STICKY = ("hook", "lru_cache", "traceback", "thread-local", "generator", "coroutine")
"""Kinds that say more than a name found behind them."""
_MAX_SEGMENTS = 6
_GENERATORS = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
BOUND = (types.MethodType, types.BuiltinMethodType, type([].__len__))
_PYTHONS_OWN = ("builtins", "collections", "weakref", "functools", "queue", "_queue")


@dataclass
class Expression:
    """What was read of a path so far.

    Attributes:
        segments: of the expression: a name, then attributes and indices.
        named: how many of them belong to the name.
        value: what the name stands for.
        prefix: words before the expression, such as "forward hook of encoder: ".
        suffix: words behind it.
    """

    segments: list[str] = field(default_factory=list)
    named: int = 0
    value: Any = None
    prefix: str = ""
    suffix: str = ""
    kept_by: str | None = None
    root: str = "C-level unknown"
    owner: str | None = None
    file: str | None = None
    line: int | None = None
    chain: list[str] = field(default_factory=list)
    is_graph: bool = False
    held: Any = None
    table: Any = None
    """A dictionary whose keys are attributes of what was read last."""
    table_kind: str = "instance attribute"
    table_owner: str | None = None
    hooks: Any = None
    """A dictionary of hooks, whose keys nobody knows."""
    classes: list[tuple[int, str]] = field(default_factory=list)
    """Where in the segments an instance's own attributes begin, and its class."""

    @property
    def text(self) -> str:
        """The expression itself."""
        return "".join(self.segments)

    def bind(self, root: str, value: Any, owner: str | None, place: tuple[str | None, int | None]) -> None:
        """What was read is a name: of this kind, standing for this value."""
        self.named, self.value = len(self.segments), value
        if self.root not in _STICKY:
            self.root, self.owner = root, owner
            self.file, self.line = place

    def restart(self, *segments: str) -> None:
        """What comes needs nothing before it."""
        self.segments, self.classes = list(segments), []


def describe(hops: list[Hop], tensor: Any, *, through_graph: bool) -> Holder:
    """The holder at the end of a path that begins at a root; of an autograd graph it is told who keeps the graph."""
    return to_holder(read_path(hops, tensor, stop_at_graph=True), through_graph=through_graph)


def read_path(hops: list[Hop], tensor: Any, *, stop_at_graph: bool) -> Expression:
    """Read a path hop by hop, up to the first node of an autograd graph or to its end."""
    read = Expression()
    owners = [hop.owner for hop in hops]
    for index, hop in enumerate(hops):
        child = owners[index + 1] if index + 1 < len(hops) else tensor
        before = owners[index - 1] if index else None
        read.chain.append(hop_text(hop.owner, hop.label))
        if stop_at_graph and not read.is_graph and _enters_graph(hop.owner, child):
            read.is_graph, read.held = True, hop.owner
        if not read.is_graph:
            _reader(hop.owner)(read, hop, child, before)
    read.chain.append(type_text(tensor))
    read.held = read.held if read.is_graph else tensor
    return read


def to_holder(read: Expression, *, through_graph: bool) -> Holder:
    """What was read, as a record."""
    segments, named = _shortened(read)
    name, rest = "".join(segments[:named]), "".join(segments[named:])
    value = read.value
    is_container = value is not None and not kinds.is_kind(value, torch.Tensor)
    return Holder(
        path=f"{read.prefix}{name}{rest}{read.suffix}",
        name=name or read.prefix.rstrip(": "),
        expression=name + rest,
        kept_by=read.kept_by,
        root=read.root,
        owner=read.owner,
        container=kinds.class_name(type(value)) if is_container else None,
        length=containers.length_of(value) if is_container else None,
        maxlen=containers.limit_of(value) if is_container else None,
        file=read.file,
        line=read.line,
        held_elements=read.held.numel() if kinds.is_kind(read.held, torch.Tensor) else None,
        held_by_graph=through_graph,
        chain=read.chain,
    )


def _shortened(read: Expression) -> tuple[list[str], int]:
    """A long expression from the innermost instance of the user's on, under its class name."""
    if len(read.segments) > _MAX_SEGMENTS:
        for start, name in reversed(read.classes):
            if 0 < start < read.named:
                return [name, *read.segments[start:]], read.named - start + 1
    return read.segments, read.named


def _enters_graph(owner: Any, child: Any) -> bool:
    return kinds.kind_of_type(type(owner)) is Kind.NODE or kinds.kind_of_type(type(child)) is Kind.NODE


Reader = Callable[[Expression, Hop, Any, Any], None]


def _reader(owner: Any) -> Reader:
    if type(owner) is Root:
        return _root
    if kinds.is_kind(owner, nn.Module):
        return _instance
    for known, reader in _READERS:
        if kinds.is_kind(owner, known):
            return reader
    return _instance


def _root(read: Expression, hop: Hop, child: Any, _: Any) -> None:
    root: Root = hop.owner
    label = hop.label or "?"
    read.segments = [label]
    kind = root.kind
    if root.thread is not None:
        kind, read.suffix = "thread", f" in thread {root.thread!r}"
    elif kind == "C-level unknown":
        read.segments = [f"a {label} that no name leads to"]
    elif label.endswith("_hooks") and type(child) is not list:
        kind, read.segments, read.hooks = "hook", [], child
        read.prefix = f"{label.strip('_').removesuffix('s').replace('_', ' ')}: "
    read.bind(kind, child, root.name, (root.file, root.line))


def _dictionary(read: Expression, hop: Hop, child: Any, before: Any) -> None:
    names = hop.owner
    key = _key_of(names, child)
    if names is read.hooks:
        _name_hook(read, child)
        return
    if type(before) is containers.LRU_CACHE and kinds.attributes_of(before) is not names:
        return
    if type(before) is types.FunctionType and names is before.__kwdefaults__:
        _default(read, key, child, before)
        return
    if kinds.is_kind(before, threading.local):
        read.table, read.table_kind, read.table_owner = child, "thread-local", kinds.class_name(type(before))
        return
    if names is read.table:
        is_index = type(key) is str and key.isdigit()
        read.segments.append(f"[{key}]" if is_index else name_text(key))
        read.bind(read.table_kind, child, read.table_owner, (read.file, read.line))
        return
    if type(before) is Root or not _is_namespace(names, before):
        read.segments.append("[…]" if key is _BY_KEY else f"[{key_text(key)}]")
    elif type(before) is types.FunctionType:
        read.restart(kinds.short_name(before.__qualname__), name_text(key))
        read.bind("function attribute", child, before.__qualname__, place_of(before))
    elif kinds.is_kind(before, type):
        read.restart(kinds.class_name(before), name_text(key))
        read.bind("class attribute", child, kinds.class_name(before), class_place(before))
    else:
        _attribute(read, before, key, child)


def _attribute(read: Expression, instance: Any, key: Any, child: Any) -> None:
    """An attribute of an instance; those that nobody writes stay silent."""
    cls = type(instance)
    if kinds.is_kind(instance, nn.Module) and key in _TABLES:
        read.table, read.table_kind, read.table_owner = child, "instance attribute", kinds.class_name(cls)
        return
    if type(key) is str and key.endswith("_hooks") and kinds.is_kind(child, dict):
        read.prefix = f"{key.strip('_').removesuffix('s').replace('_', ' ')} of {read.text}: "
        read.hooks = child
        read.restart()
        read.bind("hook", child, kinds.class_name(cls), class_place(cls))
        return
    if kinds.module_of(cls) in _PYTHONS_OWN:
        return
    read.classes.append((len(read.segments), kinds.class_name(cls)))
    read.segments.append(name_text(key))
    is_state = kinds.is_kind(instance, torch.optim.Optimizer) and key == "state"
    kind = "optimizer state" if is_state else "instance attribute"
    read.bind(kind, child, kinds.class_name(cls), class_place(cls))


def _name_hook(read: Expression, hook: Any) -> None:
    function = hook.__func__ if type(hook) is types.MethodType else hook
    if type(function) is types.FunctionType:
        read.owner = kinds.short_name(function.__qualname__)
        read.file, read.line = place_of(function)


def _exception(read: Expression, hop: Hop, child: Any, before: Any) -> None:
    for name in ("__traceback__", "__context__", "__cause__", "args"):
        if getattr(BaseException, name).__get__(hop.owner) is child:
            read.segments.append(f".{name}")
            return
    _instance(read, hop, child, before)


def _instance(read: Expression, hop: Hop, child: Any, _: Any) -> None:
    names = kinds.attributes_of(hop.owner)
    if names is child:
        return  # the dictionary says the name
    found = next((name for name, value in list(names.items()) if value is child), None)
    if found is None:
        found = next((name for name, value in kinds.slots_of(hop.owner) if value is child), None)
    if found is not None:
        _attribute(read, hop.owner, found, child)


def _sequence(read: Expression, hop: Hop, child: Any, before: Any) -> None:
    if type(before) is types.FunctionType:
        _defaults_or_closure(read, hop, child, before)
        return
    fields = kinds.namespace(type(hop.owner)).get("_fields") if kinds.is_kind(hop.owner, tuple) else None
    if type(fields) is tuple:
        index = next((i for i, one in enumerate(tuple.__iter__(hop.owner)) if one is child), 0)
        read.segments.append(name_text(fields[index]) if index < len(fields) else "[…]")
    elif read.root != "lru_cache":
        read.segments.append("[…]")


def _defaults_or_closure(read: Expression, hop: Hop, child: Any, function: types.FunctionType) -> None:
    index = next((i for i, one in enumerate(hop.owner) if one is child), 0)
    code = function.__code__
    owner = kinds.short_name(function.__qualname__)
    if hop.owner is function.__closure__:
        maker = maker_of(function.__qualname__)
        read.restart(code.co_freevars[index])
        read.suffix = f", closure variable of {maker}()"
        read.bind("closure", child.cell_contents, owner, place_of(function))
    elif function.__defaults__ is not None and hop.owner is function.__defaults__:
        first = code.co_argcount - len(function.__defaults__)
        _default(read, code.co_varnames[first + index], child, function)


def _default(read: Expression, name: Any, child: Any, function: types.FunctionType) -> None:
    owner = kinds.short_name(function.__qualname__)
    read.restart(str(name))
    read.suffix = f", default argument of {owner}()"
    read.bind("default argument", child, owner, place_of(function))


def _lru_cache(read: Expression, hop: Hop, child: Any, _: Any) -> None:
    function = kinds.attributes_of(hop.owner).get("__wrapped__")
    if child is function or child is kinds.attributes_of(hop.owner):
        return
    name = getattr(function, "__qualname__", None) if type(function) is types.FunctionType else "?"
    read.restart(f"functools.lru_cache of {kinds.short_name(name)}()")
    read.bind("lru_cache", hop.owner, kinds.short_name(name), place_of(function))


def _frame(read: Expression, hop: Hop, child: Any, before: Any) -> None:
    frame: types.FrameType = hop.owner
    if type(child) is types.FrameType:
        return
    function = f"{frame.f_code.co_name}()"
    if read.segments and type(before) is not Root:
        read.kept_by = read.text
    via = f", kept by {read.kept_by}" if read.kept_by else ""
    name = next((name for name, value in frame_locals(frame) if value is child), None)
    read.restart(name or "a temporary value")
    read.suffix = f" in {function}{via}"
    place = (shown_file(frame.f_code.co_filename), frame.f_lineno)
    kind = "traceback" if type(before) in (types.TracebackType, types.FrameType) else "frame local"
    read.bind(kind, child, kinds.short_name(frame.f_code.co_name), place)


def _generator(read: Expression, hop: Hop, child: Any, before: Any) -> None:
    kind = "coroutine" if type(hop.owner) is types.CoroutineType else "generator"
    prefix = next(one for one in ("gi", "cr", "ag") if hasattr(hop.owner, f"{one}_code"))
    frame, code = getattr(hop.owner, f"{prefix}_frame"), getattr(hop.owner, f"{prefix}_code")
    values = [] if frame is None else frame_locals(frame)
    if not (type(before) is Root and before.kind == "C-level unknown"):
        read.kept_by = read.text or None
    read.restart(next((name for name, value in values if value is child), "a temporary value"))
    read.suffix = f" in {kind} {code.co_name}()"
    line = code.co_firstlineno if frame is None else frame.f_lineno
    read.bind(kind, child, code.co_name, (shown_file(code.co_filename), line))


def _tensor(read: Expression, hop: Hop, child: Any, _: Any) -> None:
    if hop.label == "grad":
        read.segments.append(".grad")
    elif kinds.kind_of_type(type(child)) is Kind.NODE:
        read.segments.append(".grad_fn")
    elif kinds.is_kind(child, dict) and child is not kinds.attributes_of(hop.owner):
        read.prefix, read.hooks = f"hook of {read.text}: ", child
        read.restart()
        read.bind("hook", child, "Tensor", (None, None))
    else:
        _instance(read, hop, child, _)


def _array(read: Expression, hop: Hop, _: Any, __: Any) -> None:
    if hop.label == "[…]":
        read.segments.append("[…]")


def _method(read: Expression, hop: Hop, child: Any, _: Any) -> None:
    """A bound method of an instance: the instance goes by the name of its class."""
    if hop.owner.__self__ is child and not read.segments:
        read.restart(kinds.class_name(type(child)))


def _partial(read: Expression, hop: Hop, child: Any, _: Any) -> None:
    for name in ("args", "keywords", "func"):
        if getattr(functools.partial, name).__get__(hop.owner) is child:
            read.segments.append(f".{name}")


def _silent(*_: Any) -> None:
    """Nobody writes this hop."""


_READERS: tuple[tuple[type, Reader], ...] = (
    (dict, _dictionary),
    *((known, _sequence) for known in containers.SEQUENCES),
    (torch.Tensor, _tensor),
    (np.ndarray, _array),
    (types.FunctionType, _silent),
    (types.CellType, _silent),
    (type, _silent),
    (threading.local, _silent),
    (types.TracebackType, _silent),
    (BaseException, _exception),
    (types.FrameType, _frame),
    *((known, _generator) for known in _GENERATORS),
    *((known, _method) for known in BOUND),
    (containers.LRU_CACHE, _lru_cache),
    (functools.partial, _partial),
)


_BY_KEY = object()
"""The dictionary has the child as a key."""


def _key_of(names: dict[Any, Any], child: Any) -> Any:
    """The key of a value, found without comparing."""
    for key, value in list(dict.items(names)):
        if value is child:
            return key
    return _BY_KEY


def _is_namespace(names: dict[Any, Any], owner: Any) -> bool:
    return kinds.is_kind(owner, type) or kinds.attributes_of(owner) is names
