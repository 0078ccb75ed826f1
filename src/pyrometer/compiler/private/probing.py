"""What every probe inside the compiler needs: somewhere to tell, a wall towards the user's compile, a way back.

A probe runs in the middle of the user's compilation. Whatever goes wrong in it stays in it, and is told once.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Protocol


class Sink(Protocol):
    """Where probes tell what they see; a `Collector` is one."""

    unavailable: list[str]

    def emit(self, kind: str, content: Any) -> None:
        """Add what was seen, as plain values, to the compilation that is under way."""


class Wall:
    """Between a probe and the user's compile: no exception passes, each is told once."""

    def __init__(self, sink: Sink, what: str) -> None:
        self._sink = sink
        self._what = what

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Run what stands inside; a failure ends that alone."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it would end the user's compilation
            tell(self._sink, f"{self._what}: the probe failed with {type(error).__name__}: {error}")


def tell(sink: Sink, text: str) -> None:
    """Say once that something is not available."""
    if text not in sink.unavailable:
        sink.unavailable.append(text)


@contextlib.contextmanager
def replaced(
    owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Iterator[None]:
    """Put `make(original)` in the place of a function of a class or module, for a while.

    >>> import json
    >>> with replaced(json, "dumps", lambda original: lambda value: original([value])):
    ...     json.dumps(1)
    '[1]'
    >>> json.dumps(1)
    '1'
    """
    original = vars(owner)[name]
    new = functools.wraps(original)(make(original))
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, original)


def is_called_by(function: str, file: str) -> bool:
    """Whether the running code was called, at any depth, by a function of this name in a file that ends so."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - `inspect.stack` reads source files
    while frame is not None:
        if frame.f_code.co_name == function and frame.f_code.co_filename.endswith(file):
            return True
        frame = frame.f_back
    return False
