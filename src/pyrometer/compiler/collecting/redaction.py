"""A report without source text, for handing it on: figures, names and line numbers stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from pyrometer.compiler.breaks.record import Break, Rewrite
from pyrometer.compiler.costs.record import Compilation, GeneratedCode, KernelOrigin
from pyrometer.compiler.fusion.record import FusedGroup
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.place import Place, file_name
from pyrometer.record import Record

R = TypeVar("R", bound=Record)


def redacted(record: R) -> R:
    """A copy that holds no line of source text and no folder.

    Graphs keep their nodes, and files their names without folders. Names of functions, modules, inputs and operators stay,
    and so do guards, which may hold values that the program compares with.

    >>> redacted(Place(file="/home/me/secret/model.py", line=3, source="y = x * KEY"))
    Place(file='model.py', line=3, function='', source='')
    """
    plain: R = _walk(record)
    return plain


def _bases(places: list[str]) -> list[str]:
    return [file_name(place) for place in places]


def _base_if_told(place: str | None) -> str | None:
    return None if place is None else file_name(place)


def _nothing(_: str) -> str:
    return ""


FIELDS: dict[type[Record], dict[str, Callable[[Any], Any]]] = {
    Place: {"file": file_name, "source": _nothing},
    Break: {
        "file": file_name,
        "source": _nothing,
        "context": _nothing,
        "explanation": _nothing,
        "chained_to": _base_if_told,
    },
    Rewrite: {"before": _nothing, "after": _nothing},
    Compilation: {"file": file_name, "reason": _nothing},
    GeneratedCode: {"path": file_name},
    KernelOrigin: {"places": _bases},
    FusedGroup: {"places": _bases},
    GraphNode: {"file": file_name, "source": _nothing},
    Graph: {"text": _nothing},
}
"""What is changed in which record; every other field named `file` loses its folder."""


def _walk(value: Any) -> Any:
    if isinstance(value, Record):
        special = FIELDS.get(type(value), {})
        changed = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            edit = special.get(name) or (file_name if name == "file" and isinstance(old, str) else _walk)
            changed[name] = edit(old)
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, list):
        return [_walk(one) for one in value]
    if isinstance(value, dict):
        return {key: _walk(one) for key, one in value.items()}
    return value
