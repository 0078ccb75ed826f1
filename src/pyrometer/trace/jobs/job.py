"""A job of many ranks, from their summaries: who waits for whom, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pyrometer.record import Record, doc
from pyrometer.trace.jobs.clocks import ClockOffset
from pyrometer.trace.jobs.lateness import LagMap
from pyrometer.trace.jobs.matching import Mismatch
from pyrometer.trace.jobs.pipeline import Pipeline
from pyrometer.trace.jobs.stragglers import Straggler
from pyrometer.trace.jobs.summary import RankFailure
from pyrometer.trace.jobs.waits import JobCollective


class RankTime(Record, frozen=True, kw_only=True):
    """Where the time of one rank goes; with exposed copies and fills, all but `wait_ns` sum to its span."""

    rank: int
    compute_ns: Annotated[int, doc("computing on a device; where none computes, in operators")]
    exposed_comm_ns: Annotated[int, doc("communication that nothing hides, waiting for other ranks included")]
    wait_ns: Annotated[
        int | None, doc("in collectives, hidden or not, until the last rank came; null for one rank alone")
    ]
    data_ns: Annotated[int, doc("waiting for the data loader")]
    idle_ns: Annotated[int, doc("the rest: the device waits for the host, or nothing was recorded")]

    @classmethod
    def of(cls, rank: int, parts: Mapping[str, int], wait_ns: int | None) -> RankTime:
        """From the parts of its span.

        >>> RankTime.of(3, {"compute": 5, "data": 2, "memset": 1, "sync": 3, "idle": 4}, None).idle_ns
        7
        """
        on_device = any(parts.get(name, 0) for name in ("compute", "exposed_memcpy", "memset"))
        taken = {
            name: parts.get(name, 0) for name in ("compute" if on_device else "host", "exposed_comm", "data")
        }
        copies = parts.get("exposed_memcpy", 0) + parts.get("memset", 0)
        computed, exposed, data = taken.values()
        return cls(
            rank=rank,
            compute_ns=computed,
            exposed_comm_ns=exposed,
            wait_ns=wait_ns,
            data_ns=data,
            idle_ns=sum(parts.values()) - computed - exposed - data - copies,
        )


class RankRow(Record, frozen=True, kw_only=True):
    """One rank beside the others."""

    rank: int
    path: str = ""
    host: str | None = None
    span_ns: int
    parts: Annotated[dict[str, int], doc("breakdown of the span, ns; sums to it")]
    compute_ns: Annotated[
        int, doc("time in which the device computes; without one, in which an operator runs")
    ]
    communication_ns: int
    exposed_communication_ns: Annotated[int, doc("communication that no computing hides, waiting included")]
    waited_ns: Annotated[int, doc("in collectives, for the last rank to come")]
    num_collectives: int
    num_steps: int
    step_ns: Annotated[int | None, doc("mean length of its steps")] = None
    num_lost_events: int = 0


class Prefetch(Record, frozen=True, kw_only=True):
    """How well a rank hides the gathering of sharded parameters (FSDP, ZeRO)."""

    rank: int
    num_gathers: int
    gather_ns: Annotated[int, doc("total duration of its all-gathers")]
    efficiency: Annotated[
        float, doc("share of it that computing hides; the first gather of a step has nothing to hide behind")
    ]
    num_exposed: Annotated[int, doc("all-gathers of which less than half is hidden")]


class Job(Record, frozen=True, kw_only=True):
    """All ranks of a job together. All figures are in ns unless their name says otherwise."""

    world_size: Annotated[int | None, doc("as the traces say")] = None
    ranks: list[RankRow]
    warnings: Annotated[
        list[str], doc("what is wrong with the files as a whole, the gravest first, a line each")
    ] = []
    missing_ranks: Annotated[list[int], doc("of the world size, but without a usable trace")] = []
    failures: Annotated[list[RankFailure], doc("files that gave nothing, and why")] = []
    collectives: Annotated[list[JobCollective], doc("most waiting first")] = []
    wait_ns: Annotated[int, doc("total waiting of all ranks in collectives, sends and receives left out")] = 0
    stragglers: Annotated[list[Straggler], doc("worst first")] = []
    lag_map: Annotated[LagMap | None, doc("who came late in which step; null without steps")] = None
    compute_imbalance: Annotated[
        float | None, doc("largest computing time of a rank over the mean; 1 is balanced")
    ] = None
    clocks: list[ClockOffset] = []
    clock_residual_ns: Annotated[
        int | None, doc("largest of the ranks: how far figures between ranks are uncertain")
    ] = None
    num_matched: Annotated[int, doc("collectives that two or more ranks recorded")] = 0
    num_outside: Annotated[
        int, doc("collectives outside of the time that all ranks of their group recorded")
    ] = 0
    num_mismatches: Annotated[
        dict[str, int],
        doc("by kind: missing, names, sizes; apart: cannot be one, since a rank ended before another began"),
    ] = {}
    mismatches: Annotated[list[Mismatch], doc("the first of them")] = []
    num_calls_left_out: Annotated[int, doc("collectives beyond what a summary keeps")] = 0
    pipelines: list[Pipeline] = []
    prefetch: Annotated[list[Prefetch], doc("of ranks whose traces name FSDP or ZeRO")] = []
    notes: Annotated[list[str], doc("what could not be told, and why")] = []
