"""What ran before each point where Python handles signals, worked out from the events of a watched step."""

from __future__ import annotations

import dis
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPCODE, CALL, RETURN, LINE, ENTER, GAP = range(6)
"""Kinds of events."""

GENERATORS = 0x20 | 0x80 | 0x200
"""Flags of code that is entered anew for each element."""

POINTS = frozenset(
    number
    for name, number in dis.opmap.items()
    if name.startswith(("CALL", "RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "POP_JUMP_BACKWARD"))
)
"""Instructions at whose end Python handles signals."""

FEW = 5
RARE = 20
"""Times the median, above which one of many durations is not of the instruction."""


def stretches_of(events: list[Any], users: dict[int, bool]) -> dict[Any, dict[Any, tuple[int, int]]]:
    """Of each point the instructions of the user's that ran since the point before: their time in ns, and how often they ran.

    Args:
        events: in their order; see `HostWatch.events`.
        users: which codes are the user's, by their ids.
    """
    stretches = _Stretches(events, users).found
    return {
        point: {spot: _typical(spent) for spot, spent in parts.items()} for point, parts in stretches.items()
    }


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


def _costs(events: list[Any]) -> tuple[int, int]:
    """What an event takes beside what it does itself, and the call of a library's function beside that, in ns."""
    gaps = sorted(
        later[3] - earlier[4]
        for earlier, later in pairwise(events)
        if later[5] == earlier[5] and later[0] != ENTER
    )
    event_ns = gaps[len(gaps) // 10] if gaps else 0
    return event_ns, event_ns
