"""The registry of cost formulas: operator name → FLOP and bytes of one call.

Conventions. A multiplication and an addition are two FLOP, also where the hardware fuses them; every other arithmetic
operation, comparison and elementary function (exp, erf, …) of an operator's definition is one, on integers as well.
Bytes are the least that must move: every element of every input read once, every element of every output written
once, nothing kept in caches between operators. So they are lower bounds, and an achieved rate above a device's
bandwidth means that data were still in a cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal, NamedTuple, TypeVar

import pyrometer.trace.costs as home
from pyrometer.trace.costs.call import Call, NotRecordedError

Unit = Literal["matrix", "vector"]
"""Which arithmetic of a device an operator can use: its matrix units, or only the vector units."""


class Cost(NamedTuple):
    """What one call must do."""

    flop: int
    bytes_read: int
    bytes_written: int
    dtype: str  # in which it calculates
    unit: Unit = "vector"
    assumption: str | None = None  # what was not recorded and is supposed

    @property
    def num_bytes(self) -> int:
        """Bytes read and written."""
        return self.bytes_read + self.bytes_written


class Formula(NamedTuple):
    """One entry of the registry."""

    function: Callable[[Call], Cost]
    family: str  # the module that defines it
    source: str  # the formula, for people
    wraps: bool  # whether it usually leaves the work to another operator that has a formula of its own


F = TypeVar("F", bound=Callable[[Call], Cost])

_FORMULAS: dict[str, Formula] = {}


def cost(*names: str, source: str, wraps: bool = False) -> Callable[[F], F]:
    """Register a formula for operators.

    Args:
        names: such as `aten::mm`.
        source: the formula in one line.
        wraps: the operator usually leaves its work to another with a formula, which then counts alone.

    Raises:
        ValueError: an operator has a formula already.
    """

    def register(function: F) -> F:
        family = function.__module__.rsplit(".", 1)[-1]
        for name in names:
            held = _FORMULAS.get(name)
            if held is not None and held.family != family:
                raise ValueError(f"two formulas for {name}: in {held.family} and {family}")
            _FORMULAS[name] = Formula(function, family, source, wraps)
        return function

    return register


def formula_of(name: str) -> Formula | None:
    """The formula of an operator, if there is one.

    >>> formula_of("aten::addmm").source
    '2·m·n·k'
    """
    _load()
    formula = _FORMULAS.get(name)
    if formula is None and name.startswith("triton_"):
        return _FORMULAS["triton"]
    return formula or _wrapped(name)


def _wrapped(name: str) -> Formula | None:
    """SGLang's recorder of shapes names calls of aiter `sglang_profiler::<module>_<function>_<line>`."""
    found = re.match(r"sglang_profiler::(\w+)_\d+$", name)
    parts = found[1].split("_") if found else []
    wrapped = (_FORMULAS.get("aiter::" + "_".join(parts[i:])) for i in range(1, len(parts)))
    return next((formula for formula in wrapped if formula is not None), None)


def formulas() -> dict[str, Formula]:
    """Every formula by the name of its operator."""
    _load()
    return dict(sorted(_FORMULAS.items()))


def cost_of(call: Call) -> Cost:
    """FLOP and bytes of a call.

    >>> from pyrometer.trace.costs.call import parse_call
    >>> cost_of(parse_call("aten::mm", "[[2, 3], [3, 4]]", '["float", "float"]'))
    Cost(flop=48, bytes_read=72, bytes_written=32, dtype='float32', unit='matrix', assumption=None)

    Raises:
        NotRecordedError: there is no formula, or the trace does not hold what it needs.
    """
    formula = formula_of(call.name)
    if formula is None:
        raise NotRecordedError("no formula")
    result = formula.function(call)
    return result._replace(assumption=result.assumption or call.assumption)


@cache
def _load() -> None:
    for module in iter_modules(home.__path__, f"{home.__name__}."):
        import_module(module.name)
