"""The axes of a matrix: what is varied, and over which values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Annotated

from pyrometer.bench.matrix.cell import Settings
from pyrometer.errors import InputError
from pyrometer.record import Record, doc

MAX_CELLS = 200
AXES = {
    "batch": "batch_size",
    "dtype": "dtype",
    "autocast": "autocast",
    "memory_format": "memory_format",
    "threads": "threads",
    "mode": "mode",
}
"""What an axis is called, and the setting of `Workload.variant` that it varies; in the order of the cells."""
SPELLED = {setting: axis for axis, setting in AXES.items()}
"""Settings as they are shown; each names its axis, too."""


class Axis(Record, frozen=True, kw_only=True):
    """One thing that is varied."""

    name: Annotated[str, doc("batch, dtype, autocast, memory_format, threads or mode")]
    values: list[str | int]


class Axes(Record, frozen=True, kw_only=True):
    """Everything that is varied; a matrix has a cell for each combination."""

    axes: list[Axis]

    def cells(self) -> list[Settings]:
        """The settings of every cell, the first axis varying slowest.

        >>> parse_axes(["mode=eager,default", "batch=1,2"]).cells()[1]
        {'batch_size': 1, 'mode': 'default'}
        """
        names = [AXES[axis.name] for axis in self.axes]
        return [
            dict(zip(names, values, strict=True))
            for values in itertools.product(*(axis.values for axis in self.axes))
        ]


def parse_axes(texts: Iterable[str]) -> Axes:
    """Read axes such as `batch=1,4,8` or `mode=eager,default`; values that come twice count once.

    Raises:
        InputError: an unknown axis or value, an axis without values or given twice, or more than 200 cells.

    >>> [(axis.name, axis.values) for axis in parse_axes(["batch_size=1,4,4", "dtype=bfloat16"]).axes]
    [('batch', [1, 4]), ('dtype', ['bfloat16'])]
    """
    found: dict[str, Axis] = {}
    for text in itertools.chain.from_iterable(text.split() for text in texts):
        axis = _parse_axis(text)
        if axis.name in found:
            raise InputError(
                f"{text}: {axis.name} is given twice; write all its values in one, such as {axis.name}=A,B"
            )
        found[axis.name] = axis
    if not found:
        raise InputError("matrix: no axis; write for example batch=1,8 mode=eager,default")
    axes = Axes(axes=[found[name] for name in AXES if name in found])
    num_cells = len(axes.cells())
    if num_cells > MAX_CELLS:
        raise InputError(
            f"matrix: {num_cells} cells, and {MAX_CELLS} are the most; leave out values or a whole axis"
        )
    return axes


def _parse_axis(text: str) -> Axis:
    name, equals, listed = text.partition("=")
    name = SPELLED.get(name, name)
    if name not in AXES:
        raise InputError(f"{text}: {name!r} is not an axis; legal are {', '.join(AXES)}, such as batch=1,8")
    values = [value for value in listed.split(",") if value]
    if not equals or not values:
        raise InputError(f"{text}: no values; write for example {name}={_example(name)}")
    return Axis(name=name, values=list(dict.fromkeys(_parse_value(name, value) for value in values)))


def _parse_value(name: str, value: str) -> str | int:
    if name in {"batch", "threads"}:
        if not (value.isascii() and value.isdigit() and int(value) >= 1):
            raise InputError(
                f"{name}={value}: legal are whole numbers from 1, such as {name}={_example(name)}"
            )
        return int(value)
    if value not in _legal(name):
        raise InputError(f"{name}={value}: legal are {', '.join(_legal(name))}")
    return value


def _legal(name: str) -> list[str]:
    from pyrometer.workload.variant import AUTOCAST_DTYPES, DTYPES, MEMORY_FORMATS, MODES

    legal = {"mode": MODES, "memory_format": MEMORY_FORMATS, "autocast": AUTOCAST_DTYPES, "dtype": DTYPES}
    return list(legal[name])


def _example(name: str) -> str:
    return "1,4,8" if name in {"batch", "threads"} else ",".join(_legal(name)[:2])
