"""Doubles of functions: the same code over copies of what it writes to.

A hook or a loss that appends to a list of the program's would leave tensors without data in it.
"""

from __future__ import annotations

import builtins
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

import torch
from torch import nn

CONTAINERS = (list, dict, set, deque, defaultdict, OrderedDict)


def doubled_function(function: Any, double: Callable[[Any], Any]) -> Any:
    """The same function over doubles of the containers, modules and optimizers that it reaches by name.

    Args:
        function: a plain function; anything else is returned as it is.
        double: makes the double of an object.
    """
    if not isinstance(function, FunctionType):
        return function
    cells = tuple(_doubled_cell(cell, double) for cell in function.__closure__ or ())
    spaces = function.__globals__
    reached = {
        name: double(spaces[name])
        for name in _names(function.__code__)
        if name in spaces and not hasattr(builtins, name) and _is_written_to(spaces[name])
    }
    same = all(own is cell for own, cell in zip(cells, function.__closure__ or (), strict=True))
    if same and not reached:
        return function
    own = FunctionType(
        function.__code__, {**spaces, **reached}, function.__name__, function.__defaults__, cells or None
    )
    own.__kwdefaults__ = function.__kwdefaults__
    own.__dict__.update(function.__dict__)
    return own


def _doubled_cell(cell: CellType, double: Callable[[Any], Any]) -> CellType:
    try:
        value = cell.cell_contents
    except ValueError:  # a name that has no value yet
        return cell
    return CellType(double(value)) if _is_written_to(value) else cell


def _is_written_to(value: Any) -> bool:
    return type(value) in CONTAINERS or isinstance(value, (nn.Module, torch.optim.Optimizer))


def _names(code: CodeType) -> Iterator[str]:
    """Names that a function, and functions written inside it, look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
