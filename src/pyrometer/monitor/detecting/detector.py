"""What every detector of anomalies offers, and how one is made from its name and settings.

A detector is fed the values of one signal in their order, and yields a reading per block that it has judged. It reads no
clock, starts no thread and raises no alarm: an `Alarm` decides from its readings, with persistence and hysteresis.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.record import Record

Floats: TypeAlias = npt.NDArray[np.float64]


class Reading(Record, frozen=True, kw_only=True):
    """What a detector says of a block of values."""

    at_s: Seconds
    after: int  # values of this call that were seen when the block was full
    score: float  # at 1 and above the signal is over the detector's limit
    value: float
    expected: float | None = None  # None where the limit does not come from a baseline
    evidence: str


class Detector(Protocol):
    """Judges one signal."""

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """Look at the values that came since the last call; there may be none."""


F = TypeVar("F", bound=Callable[..., Detector])
_MAKERS: dict[str, Callable[..., Detector]] = {}


def registered(name: str) -> Callable[[F], F]:
    """Let a detector be made by this name; two of one name are refused."""

    def register(maker: F) -> F:
        if name in _MAKERS:
            raise ValueError(f"detector {name!r} is {_MAKERS[name]!r}, and cannot be {maker!r} as well")
        _MAKERS[name] = maker
        return maker

    return register


def make_detector(name: str, **settings: Any) -> Detector:
    """Make a detector by its name, as a configuration has it.

    Raises:
        InputError: there is no such detector, or it has no such setting.
    """
    from pyrometer.monitor.detecting import catalogue  # its modules register themselves

    maker = _MAKERS.get(name)
    if maker is None:
        raise InputError(f"detector {name!r}: no such detector; legal are {', '.join(catalogue.names())}")
    legal = inspect.signature(maker).parameters
    for key in settings:
        if key not in legal:
            raise InputError(
                f"detector {name!r}: {key}: no such setting; legal are {', '.join(legal) or 'none'}"
            )
    return maker(**settings)


def detector_names() -> list[str]:
    """The names of all detectors that are registered now."""
    return sorted(_MAKERS)


class Blocks:
    """Cuts a stream into blocks of equal length, whatever the length of what arrives.

    >>> blocks = Blocks(2)
    >>> [(after, block.tolist()) for after, block in blocks.cut(np.array([1.0, 2.0, 3.0]))]
    [(2, [1.0, 2.0])]
    >>> [(after, block.tolist()) for after, block in blocks.cut(np.array([4.0]))]
    [(1, [3.0, 4.0])]
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise InputError(f"block: got {size}; legal is 1 or more values")
        self._size = size
        self._left: Floats = np.empty(0)

    def cut(self, values: Floats) -> Iterator[tuple[int, Floats]]:
        """The blocks that are full now, each with the number of new values up to its end; what is not finite is left out."""
        carried = len(self._left)
        values = np.asarray(values, np.float64)
        stream = np.concatenate([self._left, values[np.isfinite(values)]])
        full = len(stream) // self._size * self._size
        self._left = stream[full:]
        for start in range(0, full, self._size):
            yield start + self._size - carried, stream[start : start + self._size]
