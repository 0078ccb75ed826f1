"""The dependency graph of one rank: what each point of a thread and each piece of device work had to wait for.

Nodes are points of host threads (no duration) and device work (with its duration). An edge from `u` to `v` says that
`v` cannot begin before `u` has ended and the edge's weight has passed: recorded work of the thread between two points,
the delay of a launch, the gap between queued kernels, the time that a waiting thread takes to go on. What remains
between the latest of these and the recorded begin is the node's `lag`: time that nothing in the trace explains. With
the recorded weights and lags, the forward pass gives back every recorded time to the nanosecond.

Weights of dependencies that did not hold anything up are not recorded either; they are what is typical in this trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from pyrometer.trace.dependencies.points import Points
from pyrometer.trace.dependencies.waits import Waits
from pyrometer.trace.dependencies.work import Work
from pyrometer.trace.rows import IntArray
from pyrometer.trace.trace import RankTrace, kept

BoolArray = npt.NDArray[np.bool_]


class Edge(IntEnum):
    """Why a node waits for another."""

    ROOT = 0  # nothing known: it begins when it began
    PROGRAM = 1  # work of the same thread
    WAITING = 2  # a waiting call of the same thread, or a pause: at least its own cost
    STREAM = 3  # the stream works in order
    LAUNCH = 4  # device work begins after its launch
    EVENT = 5  # work of another stream
    WAKE = 6  # a call returns after the device work that it waits for
    HANDOFF = 7  # one thread sets another to work, or waits for it
    PASS = 8  # from a node that only stands for two edges of the next


@dataclass(frozen=True)
class Graph:
    """Nodes in topological order; node 0 is the start of the span, and every other node waits for one or two before it.

    A node that waits for more has its surplus edges on nodes of its own that come before it (`is_pass`).
    """

    low: int  # the span, as in `Activity`
    high: int
    time: IntArray  # when the node began in the record
    dur: IntArray  # its duration; 0 except of device work
    work: IntArray  # index in `device`; -1 at points of threads
    point: IntArray  # index in `points`; -1 at device work
    is_pass: BoolArray
    source: IntArray  # (2, nodes): what it waits for; where there is only one, twice the same
    weight: IntArray  # (2, nodes), ns
    kind: IntArray  # (2, nodes): `Edge`
    lag: IntArray  # ns that nothing explains
    ends: IntArray  # nodes of which the last to end is the end of the span
    points: Points
    device: Work
    waits: Waits
    waiting_calls: (
        IntArray  # per waiting interval of `points.waiting`: index in `waits`; -1 where no call waits
    )
    notes: tuple[str, ...]
    kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)  # what replays prepare once

    def __len__(self) -> int:
        return len(self.time)


@kept
def dependencies(trace: RankTrace) -> Graph:
    """The dependency graph of a trace."""
    from pyrometer.trace.dependencies.assembly import build

    return build(trace)
