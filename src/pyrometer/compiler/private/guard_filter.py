"""Leaving out guards on what no program changes: that names within torch's own modules still mean what they meant.

Dynamo guards every step of the way on which a function of torch is reached, in each call; of a small model that is a fifth of
its guards. `guard_filter_fn`, an option of `torch.compile` (`torch._dynamo.types.GuardFilterEntry`), chooses among them.
What the program binds itself, be it to a function of torch, stays guarded.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch

_IMPORTED = "G['__import_torch"
"""How names begin that Dynamo made for torch's modules."""


def of_the_program(entries: Sequence[Any]) -> list[bool]:
    """Which guards are kept: all that are about inputs, the model, modes, and names that the program binds.

    Args:
        entries: torch's: a guard's name, its value, and whether it is reached through a global.
    """
    modules = {
        entry.name for entry in entries if entry.is_global and entry.has_value and _is_module(entry.value)
    }
    return [
        not (entry.is_global and entry.has_value and _is_fixed(entry.name, entry.value, modules))
        for entry in entries
    ]


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    from torch._dynamo import types

    known = getattr(getattr(types, "GuardFilterEntry", None), "__dataclass_fields__", {})
    lacking = sorted({"name", "value", "has_value", "is_global"} - set(known))
    return [f"guards that are left out: this torch's GuardFilterEntry has no {lacking[0]}"] if lacking else []


def _is_fixed(name: str, value: Any, modules: set[str]) -> bool:
    """Whether this is a module, function or class that stands in a module of torch."""
    if not (_is_module(value) or inspect.isroutine(value) or inspect.isclass(value)):
        return False
    holder, _, attribute = name.rpartition(".")
    return (holder in modules and attribute.isidentifier()) or (
        _is_module(value) and name.startswith(_IMPORTED)
    )


def _is_module(value: Any) -> bool:
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == torch.__name__
