"""A job of many ranks, from their summaries: who waits for whom, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pyrometer.place import Place
from pyrometer.record import Record, doc

MIN_GAIN = 0.02
"""Of the span, by which a straggler must lengthen it: less is the usual jitter between ranks."""

MIN_PERSISTENCE = 0.6
"""Of the steps that it leads: in a job of equals every rank is the last one now and then."""

MAX_CHANCE = 0.01
"""Of one of as many equal ranks to lag so: one is always the slowest."""


ALMOST_ALL = 0.9
"""Of the time that a rank spends on some work, by which it spends more on it than others, who do none then."""


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
    compute_chance: Annotated[
        float | None,
        doc(
            "probability that one of as many ranks with the same work computes so much in as many steps; null with fewer than three"
        ),
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

    @property
    def span_ns(self) -> int:
        """Of the rank that was recorded longest."""
        return max((row.span_ns for row in self.ranks), default=0)

    @property
    def slowest(self) -> Straggler | None:
        """The worst of the ranks that lengthen the step of all; none where ranks are late by chance, or cost nothing."""
        return next((one for one in self.stragglers if one.slows(self.span_ns)), None)


class ClockOffset(Record, frozen=True, kw_only=True):
    """How far a rank's clock is ahead of the reference rank's, beyond what the files' base times say."""

    rank: int
    offset_ns: Annotated[int, doc("estimated; positive: this clock is ahead")]
    applied_ns: Annotated[int, doc("what was corrected: the offset, or 0 on the reference's own host")]
    residual_ns: Annotated[
        int | None, doc("median deviation of its collective ends from those of all ranks, after correction")
    ] = None
    drift_ppm: Annotated[
        float | None, doc("change of the offset over time; null where it cannot be told")
    ] = None
    num_collectives: Annotated[
        int, doc("collectives behind the estimate; 0: taken from the base time alone")
    ] = 0


class LagMap(Record, frozen=True, kw_only=True):
    """How far ranks came behind the middle one of their group, step by step."""

    ranks: Annotated[
        list[int], doc("all of a small job; of a large one the stragglers, and others evenly chosen")
    ]
    steps: Annotated[list[str], doc("the last of those that the ranks recorded")]
    lag_ns: Annotated[
        list[list[int | None]],
        doc(
            "by rank and step: the largest lag of its own in a collective, 0 where it came before the middle; null without one"
        ),
    ]


class Mismatch(Record, frozen=True, kw_only=True):
    """A collective that ranks of its group disagree on."""

    kind: Annotated[
        str, doc("missing: not on every rank; names; sizes: unequal messages where they must be equal")
    ]
    name: Annotated[str, doc("the collective; several where they differ")]
    group: str | None = None
    sequence: Annotated[int | None, doc("number in its group, where the traces hold it")] = None
    step: str | None = None
    ranks: Annotated[list[int], doc("missing: ranks without it; else ranks that have it")]
    message: Annotated[str, doc("one line for people")]


class PipelineStage(Record, frozen=True, kw_only=True):
    """One stage of a pipeline."""

    stage: int
    rank: int
    bubble: Annotated[float, doc("share of the step in which the stage computes nothing; mean over steps")]
    compute_ns: Annotated[int, doc("mean per step")]
    wait_ns: Annotated[int, doc("total waiting in sends and receives for the other side to begin")]


class Pipeline(Record, frozen=True, kw_only=True):
    """One pipeline: ranks that send to each other in a chain."""

    ranks: list[int]
    num_stages: int
    num_microbatches: Annotated[
        int, doc("sends per step from one stage to the next; with interleaving, times the chunks")
    ]
    num_steps: int
    step_ns: Annotated[int, doc("mean, from the first computing of any stage to the last")]
    stages: list[PipelineStage]
    bubble: Annotated[float, doc("mean over stages")]
    theoretical_bubble: Annotated[
        float, doc("(p-1)/(m+p-1) of p equal stages and m microbatches in GPipe or 1F1B, with free transfers")
    ]


class Suspect(Record, frozen=True, kw_only=True):
    """Work that takes longer on a straggler than on the median rank, before the collectives that it comes late to."""

    name: Annotated[
        str, doc("operator, annotation or kernel; `between operators` is Python or outside waiting")
    ]
    side: Annotated[str, doc("device or host")]
    phase: str | None = None
    where: Annotated[Place, doc("the user's function that it belongs to, where the trace knows it")] = Place()
    excess_ns: Annotated[
        int, doc("total over those collectives: this rank's time less the median of the others")
    ]
    own_ns: Annotated[int, doc("total over those collectives on this rank")]


class Straggler(Record, frozen=True, kw_only=True):
    """A rank that others wait for."""

    rank: int
    caused_wait_ns: Annotated[
        int, doc("sum of the other ranks' waiting in collectives that this rank began last")
    ]
    delay_ns: Annotated[int, doc("sum over these collectives of how far it was behind the second last rank")]
    gain_ns: Annotated[
        int,
        doc(
            "what fixing this rank alone can bring: delay_ns, but no more than the exposed communication that every "
            "other rank has beyond its own, since what waits behind computing costs nothing"
        ),
    ]
    num_last: Annotated[int, doc("collectives that it began last, by more than the clocks are uncertain")]
    share: Annotated[float, doc("of all waiting in the job")]
    num_steps: Annotated[int, doc("steps in which it caused more waiting than any other rank")]
    persistence: Annotated[
        float | None, doc("those steps over all steps with waiting; null without steps")
    ] = None
    chance: Annotated[
        float | None,
        doc(
            "probability that one of as many equal ranks lags so in as many steps; null with fewer than three steps"
        ),
    ] = None
    suspects: Annotated[
        list[Suspect], doc("what it is late with; device work first where that explains the delay")
    ] = []

    @property
    def does_more(self) -> bool:
        """Whether half of its delay or more goes to work that other ranks do not do."""
        first = self.suspects[0] if self.suspects else None
        return first is not None and first.excess_ns >= max(ALMOST_ALL * first.own_ns, self.delay_ns / 2)

    def slows(
        self,
        span_ns: int,
        min_share: float = MIN_GAIN,
        min_persistence: float = MIN_PERSISTENCE,
        max_chance: float = MAX_CHANCE,
    ) -> bool:
        """Whether it lengthens the step of all, steadily, and not by chance: few steps do not tell, work that no other rank does is none."""
        steady = self.persistence is None or self.persistence >= min_persistence
        beyond_chance = self.chance is None or self.chance <= max_chance or self.does_more
        return steady and beyond_chance and self.gain_ns > 0 and self.gain_ns >= min_share * span_ns


class RankFailure(Record, frozen=True, kw_only=True):
    """A file that gave no summary."""

    path: str
    rank: Annotated[int | None, doc("where it could be told")] = None
    message: Annotated[str, doc("one line for people")]


class JobCollective(Record, frozen=True, kw_only=True):
    """One collective in one group with one dtype, over all ranks; figures per matched call unless they say total."""

    name: str
    group: str | None = None
    group_size: int | None = None
    dtype: str | None = None
    num_matched: Annotated[int, doc("calls that two or more ranks recorded")]
    bytes: Annotated[int | None, doc("median message")] = None
    latency_ns: Annotated[
        int, doc("median over calls of the shortest duration among the ranks: what moving data takes")
    ]
    skew_ns: Annotated[int, doc("median over calls of latest less earliest start")]
    max_skew_ns: int
    wait_ns: Annotated[int, doc("total over calls and ranks of the time spent waiting for the last rank")]
    duration_ns: Annotated[int, doc("total over calls and ranks")]
    bus_bandwidth: Annotated[
        float | None,
        doc("bytes per second on the links while data moves: total messages over total shortest durations"),
    ] = None
    group_ranks: Annotated[str | None, doc("ranks of the group, where the traces list them")] = None
    bus_bandwidth_of_equals: Annotated[
        float | None,
        doc(
            "median of the same collective in the other groups whose ranks lie alike, such as the other data-parallel groups"
        ),
    ] = None
    latest_rank: Annotated[int | None, doc("rank that most often starts last")] = None
    latest_share: Annotated[float | None, doc("share of the calls in which it does")] = None
