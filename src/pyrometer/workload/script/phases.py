"""Which phase the script was in at any time, and how much of each there was up to any event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyrometer.workload.script.events import Events, Integers
from pyrometer.workload.script.startup._pyrometer_inside import kinds

PHASES = ("data", "forward", "backward", "optimizer")
REST = "rest"

_PHASE_OF = {
    kinds.DATA_BEGIN: 0,
    kinds.FORWARD_BEGIN: 1,
    kinds.BACKWARD_BEGIN: 2,
    kinds.OPTIMIZER_BEGIN: 3,
}
_BEGIN_OF = {begin + 1: begin for begin in _PHASE_OF}


@dataclass(frozen=True)
class PhaseLine:
    """The phase events of a log with running totals.

    Attributes:
        events: begins and ends of phases, `n` of them.
        depth: how many phases are open after each event, `[n]`.
        spent_ns: time spent in each phase from the first event up to each, `[4, n]`; exclusive, so that the time of a
            forward pass inside an optimizer's closure is the forward's.
    """

    events: Events
    depth: Integers
    spent_ns: Integers


def trace_phases(events: Events) -> PhaseLine:
    """Follow the phases through a log.

    A begin without its end (an exception inside an optimizer, a log that breaks off) lasts until something around it
    ends or the same object begins again.
    """
    line = events.where((events.kind >= kinds.FORWARD_BEGIN) & (events.kind <= kinds.LAST_PHASE_KIND))
    active = np.full(len(line.kind), -1, dtype=np.int64)
    depth = np.zeros(len(line.kind), dtype=np.int64)
    open_phases: list[tuple[int, int]] = []
    for index, (kind, value) in enumerate(zip(line.kind.tolist(), line.value.tolist(), strict=True)):
        _advance(open_phases, kind, value)
        depth[index] = len(open_phases)
        if open_phases:
            active[index] = _PHASE_OF[open_phases[-1][0]]
    elapsed = np.diff(line.time_ns)
    spent = np.zeros((len(PHASES), len(line.kind)), dtype=np.int64)
    for phase in range(len(PHASES)):
        spent[phase, 1:] = np.cumsum(np.where(active[:-1] == phase, elapsed, 0))
    return PhaseLine(line, depth, spent)


def _advance(open_phases: list[tuple[int, int]], kind: int, value: int) -> None:
    if kind in _PHASE_OF:
        if (kind, value) in open_phases:
            del open_phases[open_phases.index((kind, value)) :]
        open_phases.append((kind, value))
        return
    begun = [position for position, (begin, _) in enumerate(open_phases) if begin == _BEGIN_OF[kind]]
    if begun:
        del open_phases[begun[-1] :]
