"""A report without source text, for handing it on: figures, names and line numbers stay."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from pyrometer.advice import Advice
from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.costs.record import Compilation
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.place import Place
from pyrometer.record import Record

R = TypeVar("R", bound=Record)

_FOLDERS = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?[/\\](?:[^/\\\s'\"<>:]+[/\\])+")

BLANKED: dict[type[Record], frozenset[str]] = {
    Place: frozenset({"source"}),
    Break: frozenset({"source", "context", "explanation"}),
    SkippedFrame: frozenset({"reason"}),
    Advice: frozenset({"replaces", "rewrite"}),
    Compilation: frozenset({"reason"}),
    GraphNode: frozenset({"source"}),
    Graph: frozenset({"text"}),
}
"""Fields that may hold lines of source text."""


def redacted(record: R) -> R:
    """A copy that holds no line of source text and no folder.

    Graphs keep their nodes, and files their names without folders. Names of functions, modules, inputs and operators stay,
    and so do guards, which may hold values that the program compares with.

    >>> redacted(Place(file="/home/me/secret/model.py", line=3, source="y = x * KEY"))
    Place(file='model.py', line=3, function=None, source=None, module=None, op=None, phase=None, rank=None)
    """
    plain: R = _walk(record)
    return plain


def _blank(record: Record, name: str) -> Any:
    """What stands for a text that is withheld; a setting is no source text, and stays."""
    text = getattr(record, name)
    if isinstance(record, Advice) and record.replaces is None:
        return text
    return None if isinstance(record, Place | Advice) else ""


def _walk(value: Any) -> Any:
    if isinstance(value, Record):
        blanked = BLANKED.get(type(value), frozenset())
        kept = {name: getattr(value, name) for name in value.__struct_fields__}
        return msgspec.structs.replace(
            value,
            **{name: _blank(value, name) if name in blanked else _walk(one) for name, one in kept.items()},
        )
    if isinstance(value, list):
        return [_walk(item) for item in value]
    if isinstance(value, dict):
        return {_walk(key): _walk(item) for key, item in value.items()}
    return _FOLDERS.sub("", value) if isinstance(value, str) else value
