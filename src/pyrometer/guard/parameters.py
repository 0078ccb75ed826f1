"""Parameters of a benchmark: a matrix of values, each cell of which is a benchmark of its own.

::

    @pm.parametrize(batch=[1, 8], mode=["eager", "default"])
    def perf_forward(batch): ...

What the function takes is passed to it; anything else is a setting of the workload that it returns, as in
`Workload.variant`. `pytest.mark.parametrize` does as well.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from pyrometer.bench.matrix.axes import AXES, SPELLED
from pyrometer.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])
Cell: TypeAlias = dict[str, Any]
"""One value for each parameter."""

MAX_CELLS = 200
_ATTRIBUTE = "__pyrometer_parameters__"


def parametrize(
    name: str | None = None, listed_values: Iterable[Any] = (), /, **values: Iterable[Any]
) -> Callable[[F], F]:
    """Run a benchmark once for each combination of values.

    Args:
        name: of one parameter, followed by its values, as pytest's mark takes them.
        listed_values: of that parameter.
        values: of each parameter; one that the function does not take is a setting of the workload that it returns:
            `batch` (or `batch_size`), `dtype`, `autocast`, `memory_format`, `mode` or `threads`.

    Raises:
        InputError: a parameter without values.

    >>> @parametrize(batch=[1, 8])
    ... def perf_forward(batch): ...
    >>> [label_of(cell) for cell in cells_of(perf_forward)]
    ['batch=1', 'batch=8']
    >>> [label_of(cell) for cell in cells_of(parametrize("batch", [2])(lambda batch: None))]
    ['batch=2']
    """
    given_values = values if name is None else {name: listed_values, **values}
    listed = {each: list(given) for each, given in given_values.items()}
    for each, given in listed.items():
        if not given:
            raise InputError(f"parametrize: {each} has no values; write for example {each}=[1, 8]")

    def mark(function: F) -> F:
        setattr(function, _ATTRIBUTE, [*getattr(function, _ATTRIBUTE, []), listed])
        return function

    return mark


def cells_of(function: Callable[..., Any]) -> list[Cell]:
    """Every combination of a function's values; one empty cell where it has no parameters.

    Raises:
        InputError: more than 200 cells, or one parameter given twice.
    """
    axes = [
        (tuple(_spelled(function, key) for key in keys), rows)
        for keys, rows in (*_own_axes(function), *_pytest_axes(function))
    ]
    names = [name for axis in axes for name in axis[0]]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{function.__name__}: {twice} has values twice; write all of them in one list")
    cells = [
        {
            name: value
            for (keys, _), row in zip(axes, rows, strict=True)
            for name, value in zip(keys, row, strict=True)
        }
        for rows in itertools.product(*(rows for _, rows in axes))
    ]
    if len(cells) > MAX_CELLS:
        raise InputError(
            f"{function.__name__}: {len(cells)} combinations, and {MAX_CELLS} are the most; leave out values"
        )
    return cells


def label_of(cell: Cell) -> str:
    """A cell in words, as it stands between the brackets of a benchmark's name.

    >>> label_of({"batch": 1, "mode": "eager"})
    'batch=1,mode=eager'
    """
    return ",".join(f"{name}={_shown(value)}" for name, value in cell.items())


def split(function: Callable[..., Any], cell: Cell) -> tuple[Cell, Cell]:
    """What a function takes of a cell, and what is left as settings of the workload, by the names of `Workload.variant`.

    >>> split(lambda batch: None, {"batch": 1, "mode": "eager"}), split(lambda: None, {"batch": 1})
    (({'batch': 1}, {'mode': 'eager'}), ({}, {'batch_size': 1}))
    """
    own = {name: value for name, value in cell.items() if _takes(function, name)}
    return own, {AXES.get(name, name): value for name, value in cell.items() if name not in own}


def _takes(function: Callable[..., Any], name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(
        each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()
    )


def _spelled(function: Callable[..., Any], name: str) -> str:
    """A parameter as it is shown: a setting has one spelling, whichever of its names was written."""
    return name if _takes(function, name) else SPELLED.get(name, name)


_Axis: TypeAlias = tuple[tuple[str, ...], list[tuple[Any, ...]]]


def _own_axes(function: Callable[..., Any]) -> Iterator[_Axis]:
    marks: list[Mapping[str, list[Any]]] = getattr(function, _ATTRIBUTE, [])
    for mark in marks:
        for name, values in mark.items():
            yield (name,), [(value,) for value in values]


def _pytest_axes(function: Callable[..., Any]) -> Iterator[_Axis]:
    """Those of `pytest.mark.parametrize`, which are read without pytest; closest to the function first."""
    for mark in getattr(function, "pytestmark", []):
        if getattr(mark, "name", None) != "parametrize":
            continue
        given = dict(zip(("argnames", "argvalues"), mark.args, strict=False)) | mark.kwargs
        names = given["argnames"]
        keys = tuple(part.strip() for part in names.split(",")) if isinstance(names, str) else tuple(names)
        rows = [
            getattr(value, "values", value) if _is_param(value) else value for value in given["argvalues"]
        ]
        yield keys, [tuple(row) if len(keys) > 1 or _is_row(row) else (row,) for row in rows]


def _is_param(value: Any) -> bool:
    """Whether a value was wrapped by `pytest.param`."""
    return type(value).__name__ == "ParameterSet"


def _is_row(row: Any) -> bool:
    return isinstance(row, tuple) and len(row) == 1


def _shown(value: Any) -> str:
    if isinstance(value, (str, int, float, bool, type(None))):
        return str(value)
    name = getattr(value, "__qualname__", None)
    return str(name or value).removeprefix("torch.").replace("\n", " ")[:60]
