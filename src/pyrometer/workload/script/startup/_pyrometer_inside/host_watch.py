"""Watches one step instruction by instruction: how often lines follow each other, and what runs before each look of a sampler.

Python handles a signal at calls, at entries of functions and at the ends of loops. What is seen there may be what ran before,
back to the last of these points: a stretch. This says of each point what its stretch is made of, in the user's code.
"""

from __future__ import annotations

import dis
import sys
import sysconfig
from itertools import pairwise
from time import perf_counter_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

MOST_INSTRUCTIONS = 1_000
"""Of one line that are timed; after these it is only counted."""

GENERATORS = 0x20 | 0x80 | 0x200
"""Flags of code that is entered anew for each element."""

INSTRUCTIONS_PER_LINE = 10
"""In a rough mean."""

MOST_EVENTS = 400_000
"""After these nothing is watched any more, and nothing is told of how often lines ran."""

OPCODE, CALL, RETURN, LINE, ENTER, GAP = range(6)

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
        found = _Stretches(self.events, self._users).found
        self.stretches = {
            point: {spot: _typical(spent) for spot, spent in parts.items()} for point, parts in found.items()
        }
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


class _Stretches:
    """Replays events, and holds what ran since the last point until the next one is reached."""

    def __init__(self, events: list[Any], users: dict[int, bool]) -> None:
        self.found: dict[tuple[Any, int, Any, int], dict[tuple[Any, int], list[int]]] = {}
        self._partial: dict[tuple[Any, int, Any, int], dict[tuple[Any, int], list[int]]] = {}
        self._users = users
        self._stack: list[tuple[Any, int] | None] = []
        self._is_whole = True
        self._pending: list[tuple[tuple[Any, int], int]] = []
        self._points: dict[int, bytes] = {}
        self._calls: list[int] = []
        event_ns, library_ns = _costs(events)
        previous: Any = None
        for event in events:
            if previous is not None:
                spent = (
                    event[3]
                    - previous[4]
                    - event_ns
                    - (event[5] - previous[5] - (event[0] == ENTER)) * library_ns
                )
                self._spend(spent)
            self._take(event)
            previous = event
        self.found = self._partial | self.found

    def _spend(self, spent_ns: int) -> None:
        running = self._stack[-1] if self._stack else None
        if running is not None:
            self._pending.append((running, max(spent_ns, 0)))

    def _take(self, event: Any) -> None:
        kind, code, instruction, *_, back, back_instruction = event
        if kind == OPCODE:
            self._step_to(code, instruction)
        elif kind == GAP:
            # Nothing is known from here on, and of the point that comes next only the end of its stretch.
            self._is_whole = False
            self._pending.clear()
            if self._stack:
                self._stack[-1] = None
        elif kind == ENTER:
            self._flush(code, instruction, *self._top())
        elif kind == CALL:
            if back is not None and not self._users.get(id(back), False):
                self._flush(back, back_instruction, *self._top())
            self._stack.append((code, instruction))
            self._calls.append(0)
        elif kind == RETURN:
            self._leave(code, back, back_instruction)

    def _leave(self, code: Any, back: Any, back_instruction: int) -> None:
        if self._stack:
            self._stack.pop()
            self._calls.pop()
        if back is None or not self._users.get(id(back), False):
            self._flush(back, back_instruction, *self._top())
        elif self._calls:
            # Generators are asked by what is no Python, as are functions that one instruction calls several times.
            self._calls[-1] += 2 if code.co_flags & GENERATORS else 1

    def _step_to(self, code: Any, instruction: int) -> None:
        if not self._stack:
            self._stack.append(None)
            self._calls.append(0)
        done = self._stack[-1]
        # A call of the user's own Python ends without a look at signals: what it ended with waits for the next point.
        if done is not None and self._calls[-1] != 1 and self._is_point(*done):
            self._flush(*done, None, 0)
        self._stack[-1] = (code, instruction)
        self._calls[-1] = 0

    def _top(self) -> tuple[Any, int]:
        top = self._stack[-1] if self._stack else None
        return top or (None, 0)

    def _is_point(self, code: Any, instruction: int) -> bool:
        instructions = self._points.get(id(code))
        if instructions is None:
            instructions = self._points[id(code)] = code.co_code
        return 0 <= instruction < len(instructions) and instructions[instruction] in POINTS

    def _flush(self, code: Any, instruction: int, below: Any, below_instruction: int) -> None:
        """A point is reached; stretches of which not all was timed count where there is no other."""
        if self._pending:
            known = self.found if self._is_whole else self._partial
            into = known.setdefault((code, instruction, below, below_instruction), {})
            for place, spent in self._pending:
                into.setdefault(place, []).append(spent)
        self._pending.clear()
        self._is_whole = True


def _typical(spent: list[int]) -> tuple[int, int]:
    """Time and count of an instruction, without what the system put in between once in a while."""
    if len(spent) < FEW:
        return sum(spent), len(spent)
    most = RARE * sorted(spent)[len(spent) // 2]
    return sum(min(each, most) for each in spent), len(spent)


FEW = 5
RARE = 20
"""Times the median, above which one of many durations is not of the instruction."""

POINTS = frozenset(
    number
    for name, number in dis.opmap.items()
    if name.startswith(("CALL", "RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "POP_JUMP_BACKWARD"))
)
"""Instructions at whose end Python handles signals."""


def _costs(events: list[Any]) -> tuple[int, int]:
    """What an event takes beside what it does itself, and the call of a library's function beside that, in ns."""
    gaps = sorted(
        later[3] - earlier[4]
        for earlier, later in pairwise(events)
        if later[5] == earlier[5] and later[0] != ENTER
    )
    event_ns = gaps[len(gaps) // 10] if gaps else 0
    return event_ns, event_ns
