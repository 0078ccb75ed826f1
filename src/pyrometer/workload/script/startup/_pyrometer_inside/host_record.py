"""What a sampler and a watch saw, without the code objects themselves: plain lists that a file can hold."""

from __future__ import annotations

import dis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from .host_sampler import HostSampler
    from .host_watch import HostWatch


THREAD_NOTE = (
    "a thread of its own looked at the host, as the timer and its signal are in use or this is not the main thread: "
    "places are less sharp"
)
TRACED_NOTE = "how often lines run was not counted: a debugger or coverage traces this thread"
COUNT_NOTE = "how often lines run was not counted: a step runs too many"


def host_record(
    sampler: HostSampler,
    watch: HostWatch | None,
    sampled_ns: list[int],
    bare_ns: list[int],
    notes: list[str],
) -> dict[str, Any]:
    """The fields of `HostSamples`.

    Args:
        sampler: with what it saw of the sampled steps.
        watch: of one more step; None where there was none.
        sampled_ns: how long the sampled steps took.
        bare_ns: how long those between them took.
        notes: what could not be observed.
    """
    if not sampler.by_timer:
        notes = [*notes, THREAD_NOTE]
    table = _Table()
    stacks: dict[tuple[Any, ...], int] = {}
    for spent_ns, garbage, flat in sampler.samples:
        stack = table.stack(flat)
        stacks[garbage, stack] = stacks.get((garbage, stack), 0) + spent_ns
    waits: dict[tuple[Any, ...], int] = {}
    for flat, others in sampler.waits:
        wait = (table.stack(flat), tuple((thread, table.stack(other)) for thread, other in others))
        waits[wait] = waits.get(wait, 0) + 1
    record: dict[str, Any] = {
        "interval_ns": sampler.interval_ns,
        "by_timer": sampler.by_timer,
        "look_ns": sampler.spent_ns // max(sampler.looks, 1),
        "looks": sampler.looks,
        "sampled_ns": sampled_ns,
        "bare_ns": bare_ns,
        "stacks": [[spent_ns, *stack] for stack, spent_ns in stacks.items()],
        "waits": [[times, *wait] for wait, times in waits.items()],
        "notes": notes,
    }
    if watch is not None:
        record |= _watched(watch, table)
    return record | {"codes": table.codes, "places": table.places}


def _watched(watch: HostWatch, table: _Table) -> dict[str, Any]:
    def place(code: CodeType | None, at: int) -> int:
        return -1 if code is None else table.place(code, at)

    stretches = [
        [place(code, at), place(below, below_at), table.place(*spot), *spent]
        for (code, at, below, below_at), parts in watch.stretches.items()
        for spot, spent in parts.items()
    ]
    types = [
        [table.code(watch.codes[key]), name, kind]
        for key, names in watch.types.items()
        for name, kind in names.items()
    ]
    if not watch.complete:
        return {"stretches": stretches, "types": types, "watched": watch.steps}
    edges = [
        [table.code(watch.codes[key]), before, line, n] for (key, before, line), n in watch.edges.items()
    ]
    calls = [[table.code(watch.codes[key]), n] for key, n in watch.calls.items()]
    return {"stretches": stretches, "types": types, "watched": watch.steps, "edges": edges, "calls": calls}


class _Table:
    """Numbers for code and places, in the order in which they are asked for."""

    def __init__(self) -> None:
        self.codes: list[list[Any]] = []
        self.places: list[list[Any]] = []
        self._codes: dict[int, int] = {}
        self._places: dict[tuple[int, int], int] = {}
        self._known: list[tuple[Any, bytes, list[Any]]] = []

    def code(self, code: CodeType) -> int:
        """The number of a code: its file, qualified name, first line and flags are noted."""
        number = self._codes.get(id(code))
        if number is None:
            number = self._codes[id(code)] = len(self.codes)
            self.codes.append([code.co_filename, code.co_qualname, code.co_firstlineno, code.co_flags])
            self._known.append((code, code.co_code, list(code.co_positions())))
        return number

    def stack(self, flat: list[Any]) -> tuple[int, ...]:
        """The numbers of the instructions of a stack."""
        return tuple(self.place(flat[i], flat[i + 1]) for i in range(0, len(flat), 2))

    def place(self, code: CodeType, instruction: int) -> int:
        """The number of an instruction: its code, name, lines and columns in bytes are noted."""
        number = self.code(code)
        _, text, positions = self._known[number]
        instruction = _called(text, max(instruction, 0))
        place = self._places.get((number, instruction))
        if place is None:
            place = self._places[number, instruction] = len(self.places)
            name = dis.opname[text[instruction]] if instruction < len(text) else ""
            spot = positions[instruction // 2] if instruction // 2 < len(positions) else (None,) * 4
            self.places.append([number, name, *spot])
        return place


def _called(text: bytes, instruction: int) -> int:
    """A call is two instructions on Python 3.11; what the first does by itself counts as the second's."""
    if instruction < len(text) and dis.opname[text[instruction]] == "PRECALL":
        for later in range(instruction + 2, min(instruction + 8, len(text)), 2):
            if dis.opname[text[later]] == "CALL":
                return later
    return instruction
