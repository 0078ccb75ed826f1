"""Watches one step instruction by instruction: how often lines follow each other, and what runs before each look of a sampler.

Python handles a signal at calls, at entries of functions and at the ends of loops. What is seen there may be what ran before,
back to the last of these points: a stretch. This says of each point what its stretch is made of, in the user's code.
"""

from __future__ import annotations

import sys
import sysconfig
from time import perf_counter_ns

from .host_stretches import CALL, ENTER, GAP, GENERATORS, LINE, OPCODE, RETURN, stretches_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

MOST_INSTRUCTIONS = 1_000
"""Of one line that are timed; after these it is only counted."""

INSTRUCTIONS_PER_LINE = 10
"""In a rough mean."""

MOST_EVENTS = 400_000
"""After these nothing is watched any more, and nothing is told of how often lines ran."""

_LIBRARIES = tuple(
    {
        f"{sysconfig.get_path(name)}/"
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
        if sysconfig.get_path(name)
    }
)
_OURS = __file__.partition("/workload/script/startup/")[0] + "/"


def may_be_users(code: CodeType) -> bool:
    """Whether code may be the user's; a cheap answer, which is right where packages lie in their folders."""
    file = code.co_filename
    if file.startswith("<"):
        return not file.startswith(("<frozen", "<string>"))
    return not (
        file.startswith(_LIBRARIES)
        or file.startswith(_OURS)
        or "/site-packages/" in file
        or "/dist-packages/" in file
    )


class HostWatch:
    """Events of one step; see `stretches` once it is settled, and `edges` and `calls` where `complete`."""

    def __init__(self) -> None:
        self.events: list[tuple[int, Any, int, int, int, int, Any, int]] = []
        self.edges: dict[tuple[int, int, int], int] = {}
        """How often a line came after another in a frame of a code: (id of the code, line before or 0, line)."""
        self.calls: dict[int, int] = {}
        """Entries into a code, by its id."""
        self.codes: dict[int, CodeType] = {}
        self.types: dict[int, dict[str, str]] = {}
        """What names of a code were bound to when it first returned, by the id of the code; `self.x` is a name, too."""
        self.stretches: dict[tuple[Any, int, Any, int], dict[tuple[Any, int], tuple[int, int]]] = {}
        """What ran before each point where a signal is handled, once settled.

        A key is a point, and the instruction of the user's below it where the point is not in the user's code; values are the
        user's instructions that ran since the point before, their time in ns, and how often they ran.
        """
        self.complete = True
        self.steps = 0
        self._users: dict[int, bool] = {}
        self._left: dict[tuple[int, int], int] = {}
        self._last: dict[int, int] = {}
        self._num_events = 0
        self._library_calls = 0
        self._marked: list[FrameType] = []

    def begin(self, frame: FrameType | None = None) -> None:
        """Watch the calls of this thread from now on, and frames from this one outwards that may be the user's."""
        while frame is not None:
            if self._is_users(frame.f_code) and frame.f_trace is None:
                frame.f_trace, frame.f_trace_opcodes = self._local, True
                self._marked.append(frame)
            frame = frame.f_back
        self.steps += 1
        sys.settrace(self._global)

    def end(self) -> None:
        """Watch no more."""
        if sys.gettrace() == self._global:
            sys.settrace(None)
        while self._marked:
            frame = self._marked.pop()
            frame.f_trace, frame.f_trace_opcodes = None, False
            self.types.setdefault(id(frame.f_code), types_in(frame))

    def _is_users(self, code: CodeType) -> bool:
        users = self._users.get(id(code))
        if users is None:
            users = self._users[id(code)] = may_be_users(code)
            self.codes[id(code)] = code
        return users

    def _global(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        start = perf_counter_ns()
        code = frame.f_code
        key = id(code)
        users = self._users.get(key)
        if users is None:
            users = self._is_users(code)
        back = frame.f_back
        if not users:
            self._library_calls += 1
            if back is not None and self._users.get(id(back.f_code)) and len(self.events) < MOST_EVENTS:
                self.events.append(
                    (ENTER, code, frame.f_lasti, start, perf_counter_ns(), self._library_calls, None, 0)
                )
            return None
        if not self.complete:
            return None
        self.calls[key] = self.calls.get(key, 0) + 1
        frame.f_trace_opcodes = self._left.get((key, frame.f_lineno), 1) > 0
        if not code.co_flags & GENERATORS:
            self._last.pop(id(frame), None)
        self._num_events += 1
        self.events.append(
            (CALL, code, frame.f_lasti, start, perf_counter_ns(), self._library_calls, *_of(back))
        )
        return self._local

    def _local(self, frame: FrameType, event: str, _arg: Any) -> Any:
        start = perf_counter_ns()
        code = frame.f_code
        if event == "opcode":
            kind = OPCODE
        elif event == "line":
            kind = self._on_line(frame, code)
            if self._num_events > MOST_EVENTS:
                self._give_up(frame)
                return None
        elif event == "return":
            if id(code) not in self.types:
                self.types[id(code)] = types_in(frame)
            came_from = _of(frame.f_back)
            self.events.append(
                (RETURN, code, frame.f_lasti, start, perf_counter_ns(), self._library_calls, *came_from)
            )
            self._num_events += 1
            return self._local
        else:
            return self._local
        if kind >= 0:
            self.events.append(
                (kind, code, frame.f_lasti, start, perf_counter_ns(), self._library_calls, None, 0)
            )
        return self._local

    def _on_line(self, frame: FrameType, code: CodeType) -> int:
        """Count a line; its instructions are timed unless enough of them were. Returns the event to note, or -1."""
        key, line = id(code), frame.f_lineno or 0  # none of instructions that the compiler added
        before = self._last.get(id(frame), 0)
        self._last[id(frame)] = line
        edge = (key, before, line)
        self.edges[edge] = self.edges.get(edge, 0) + 1
        self._num_events += 1
        left = self._left.get((key, line), MOST_INSTRUCTIONS)
        if left > 0:
            self._left[key, line] = left - INSTRUCTIONS_PER_LINE
            frame.f_trace_opcodes = True
            return LINE
        was_timed, frame.f_trace_opcodes = frame.f_trace_opcodes, False
        return GAP if was_timed else -1

    def _give_up(self, frame: FrameType | None) -> None:
        self.complete = False
        self.end()
        while frame is not None:
            if frame.f_trace == self._local:
                frame.f_trace, frame.f_trace_opcodes = None, False
            frame = frame.f_back

    def settle(self) -> None:
        """Work out the stretches, and let the events go."""
        self.stretches = stretches_of(self.events, self._users)
        self.events.clear()


def types_in(frame: FrameType) -> dict[str, str]:
    """The types of what a frame's names are bound to: its own, the globals that it uses, and attributes of `self`."""
    code, inside = frame.f_code, frame.f_locals
    bound = {name: frame.f_globals[name] for name in code.co_names if name in frame.f_globals} | inside
    if "self" in inside:
        held = getattr(inside["self"], "__dict__", {})
        parts = {
            **held,
            **held.get("_parameters", {}),
            **held.get("_buffers", {}),
            **held.get("_modules", {}),
        }
        bound |= {f"self.{name}": parts[name] for name in code.co_names if name in parts}
    return {name: _type_name(value) for name, value in bound.items() if not isinstance(value, type(sys))}


def _type_name(value: Any) -> str:
    kind = type(value)
    for above in kind.__mro__:
        name = f"{above.__module__}.{above.__qualname__}"
        if name in _BASES:
            return name
    return f"{kind.__module__}.{kind.__qualname__}"


_BASES = frozenset(
    {
        "torch.Tensor",
        "torch.nn.modules.module.Module",
        "numpy.ndarray",
        "numpy.generic",
        "logging.Logger",
        "_io._IOBase",
        "random.Random",
    }
)
"""Types that stand for all that are made of them."""


def _of(frame: FrameType | None) -> tuple[Any, int]:
    return (None, 0) if frame is None else (frame.f_code, frame.f_lasti)
