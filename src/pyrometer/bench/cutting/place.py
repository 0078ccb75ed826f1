"""Places of a target that can be cut out of its steps: functions of the user's, and the loader."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Literal, Protocol

import msgspec
from torch import nn

from pyrometer.bench.cutting.discovery import CalledCode
from pyrometer.bench.cutting.recording import Recorder
from pyrometer.bench.cutting.replaying import Replayer
from pyrometer.bench.cutting.substitution import Substitute, Substitution
from pyrometer.place import Place
from pyrometer.workload.batches import BatchStream

MOSTLY = 0.9
"""Of a function's time: what spends as much in another is told by that."""

_DEF = re.compile(r"\s*(?:async\s+)?(?:def|class)\b")


class Change(Protocol):
    """What can be put in place and taken back."""

    def install(self) -> None:
        """Put it in place."""

    def remove(self) -> None:
        """Take it back."""


class StreamChange:
    """Another way to the next batch of a stream."""

    def __init__(self, stream: BatchStream, substitute: Substitute) -> None:
        self._stream = stream
        self._substitute = substitute

    def install(self) -> None:
        """Ask the substitute for batches."""
        original, substitute = self._stream.next, self._substitute
        self._before = vars(self._stream).get("next")
        self._stream.next = lambda: substitute(original, (), {})  # type: ignore[method-assign]

    def remove(self) -> None:
        """Ask as before; of several changes the last one is taken back first."""
        if self._before is None:
            del self._stream.next
        else:
            self._stream.next = self._before  # type: ignore[method-assign]


@dataclass
class Cuttable:
    """A place, with what it costs as it was first seen, and what was recorded of it."""

    what: Literal["function", "module", "loader"]
    name: str
    where: Place
    last_line: int | None
    share: float
    change: Callable[[Substitute], Change]
    called: CalledCode | None = None

    def __post_init__(self) -> None:
        self.recorder = Recorder()

    def is_mostly(self, other: Cuttable) -> bool:
        """Whether nearly all of its time is spent in another place."""
        if self.called is None or other.called is None or self is other:
            return False
        return self.called.inside.get(other.called.code, 0) >= MOSTLY * self.called.total_ns

    def where_in(self, model: nn.Module | None) -> Place:
        """Its place; with the path of the module where it is the forward of only one."""
        owners = {id(call.owner) for call in self.recorder.calls}
        if model is None or self.what != "module" or len(owners) != 1:
            return self.where
        path = next((path for path, part in model.named_modules() if id(part) in owners), None)
        return msgspec.structs.replace(self.where, module=path or None)

    def recording(self) -> Change:
        """Its calls are recorded."""
        return self.change(self.recorder)

    def replayer(self) -> Replayer:
        """What hands out what it returned."""
        return Replayer(self.recorder.calls, trained=self.what == "module")


def cuttable_function(called: CalledCode, functions: list[FunctionType], share: float) -> Cuttable:
    """A function or the forward of a module."""
    code = called.code
    line = _def_line(code)
    return Cuttable(
        what="module" if _is_forward(code) else "function",
        name=f"`{code.co_qualname}`",
        where=Place(file=code.co_filename, line=line, function=code.co_qualname),
        last_line=max(_lines(code), default=line),
        share=share,
        change=lambda substitute: Substitution(functions, substitute),
        called=called,
    )


def cuttable_stream(stream: BatchStream, share: float) -> Cuttable:
    """The loader."""
    return Cuttable(
        what="loader",
        name="the loader",
        where=Place(phase="data"),
        last_line=None,
        share=share,
        change=lambda substitute: StreamChange(stream, substitute),
    )


def _is_forward(code: CodeType) -> bool:
    return code.co_name == "forward" and code.co_varnames[:1] == ("self",)


def _def_line(code: CodeType) -> int:
    """The line of the `def`, which decorators may precede."""
    for line in range(code.co_firstlineno, code.co_firstlineno + 50):
        if _DEF.match(linecache.getline(code.co_filename, line)):
            return line
    return code.co_firstlineno


def _lines(code: CodeType) -> Iterator[int]:
    yield from (line for _, _, line in code.co_lines() if line is not None)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _lines(constant)
