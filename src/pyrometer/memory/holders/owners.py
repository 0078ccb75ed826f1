"""What owners of things are called in a chain, and where they are defined."""

from __future__ import annotations

import types
from typing import Any

from pyrometer.memory.holders import containers, kinds
from pyrometer.memory.holders.roots import Root, shown_file


def place_of(function: Any) -> tuple[str | None, int | None]:
    """Where a function of Python is defined."""
    if type(function) is not types.FunctionType:
        return None, None
    return shown_file(function.__code__.co_filename), function.__code__.co_firstlineno


def class_place(cls: type) -> tuple[str | None, int | None]:
    """Where a class is defined, as near as its own methods tell."""
    places = [
        place_of(function)
        for function in list(kinds.namespace(cls).values())
        if type(function) is types.FunctionType
    ]
    real = [(file, line) for file, line in places if file and not file.startswith("<")]
    return min(real, key=lambda place: place[1] or 0, default=(None, None))


def maker_of(qualified: str) -> str:
    """The function that a closure was made in.

    >>> maker_of("make_step.<locals>.step")
    'make_step'
    """
    outer = qualified.rpartition(".<locals>.")[0] or qualified
    return kinds.short_name(outer)


def hop_text(owner: Any, label: str | None) -> str:
    """One hop of the long view."""
    if type(owner) is Root:
        thread = f" in thread {owner.thread!r}" if owner.thread else ""
        return f"{owner.kind} {label} of {owner.name}{thread}"
    text = type_text(owner)
    return f"{text}: {label}" if label else text


def type_text(value: Any) -> str:
    """What a thing is, with its size where it is a container."""
    cls = type(value)
    if cls is types.FunctionType:
        return f"function {kinds.short_name(value.__qualname__)}"
    if kinds.is_kind(value, type):
        return f"class {kinds.class_name(value)}"
    if cls is types.FrameType:
        return f"frame of {value.f_code.co_name}"
    size = containers.length_of(value) if containers.holds(value) else None
    return kinds.class_name(cls) if size is None else f"{kinds.class_name(cls)} of {size}"
