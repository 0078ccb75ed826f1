"""What bounds one rank, and what changes would bring."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.place import Place
from pyrometer.quantity import Ratio
from pyrometer.record import Record, doc


class PathOp(Record, frozen=True, kw_only=True):
    """All stretches of the critical path that events of one name take."""

    name: str
    class_name: Annotated[str, doc("one of `CLASSES` of `dependencies.path`")]
    ns: Annotated[int, doc("time on the critical path")]
    share: Annotated[float, doc("of the span")]
    num: Annotated[int, doc("stretches of the path")]
    where: Annotated[Place, doc("place of the longest one")] = Place()


class PathSegment(Record, frozen=True, kw_only=True):
    """One stretch of the critical path."""

    start_ns: int
    end_ns: int
    class_name: str
    name: str
    event: Annotated[int | None, doc("row of `events`; null where nothing was recorded")] = None


class OpSlack(Record, frozen=True, kw_only=True):
    """How far the events of one name are from holding anything up."""

    name: str
    is_device: bool
    ns: Annotated[int, doc("total own time")]
    critical_ns: Annotated[int, doc("part of it without slack")]
    least_slack_ns: Annotated[
        int, doc("how much longer the tightest could take without making the run longer")
    ]
    median_slack_ns: int
    num: int


class StepPath(Record, frozen=True, kw_only=True):
    """The part of the critical path that lies within one step."""

    name: str
    total_ns: int
    mostly: str = "none"
    by_class: dict[str, int]


class CriticalPath(Record, frozen=True, kw_only=True):
    """The chain that the run is made of, from its end back to its start; `by_class` sums to `total_ns` exactly."""

    total_ns: Annotated[int, doc("the span, as in the breakdown")]
    mostly: Annotated[
        str,
        doc("compute, communication, copies, launch, data, host, idle: what most of it is; none if empty"),
    ] = "none"
    by_class: Annotated[dict[str, int], doc("ns per class; every class is there")]
    by_op: Annotated[list[PathOp], doc("longest first, limited")] = []
    by_step: list[StepPath] = []
    segments: Annotated[list[PathSegment], doc("the longest, in order of time")] = []
    num_segments: Annotated[int, doc("how many there are in all")] = 0
    slack: Annotated[
        list[OpSlack], doc("most time off the path first: to speed these up gains nothing at first")
    ] = []
    lag_ns: Annotated[
        int, doc("part of `idle` that is no gap between queued work: delays without a cause")
    ] = 0
    loading: Annotated[
        Place, doc("the function within the loader in which most of the path's loading runs, if one is known")
    ] = Place()
    notes: Annotated[list[str], doc("what was inferred because the trace does not tell")] = []


Resource = Literal[
    "compute",
    "communication",
    "copies",
    "synchronisation",
    "data",
    "host",
    "operators",
    "python",
    "unrecorded",
]


Bound = Literal[Resource, "balanced"]


HELPS = 1.15
"""How many times faster a run must be with a resource free to be bound by it."""


MOSTLY = 0.5
"""Of the critical path: if nothing explains more than this, no resource is known to bound it."""


class FreeResource(Record, frozen=True, kw_only=True):
    """What one resource holds up."""

    resource: Resource
    free_ratio: Annotated[Ratio, doc("new over old span, if all of it took no time")]
    changed_ratio: Annotated[
        Ratio,
        doc("the same, if kernels or the host took half as long; of what can be hidden, if it took no time"),
    ]


class Bounds(Record, frozen=True, kw_only=True):
    """What bounds one rank."""

    bound: Annotated[Bound, doc("what would help most, or balanced, or unrecorded")] = "unrecorded"
    resources: Annotated[
        list[FreeResource], doc("the one that wins most first; those that win nothing too")
    ] = []
    unexplained: Annotated[
        Ratio,
        doc("of the critical path, that nothing in the trace explains, or during which nothing was recorded"),
    ] = 0.0

    @property
    def free_ratio(self) -> Ratio:
        """New over old span without what bounds; of a balanced run without the resource that would win most."""
        chosen = (free.free_ratio for free in self.resources if self.bound in {free.resource, "balanced"})
        return next(chosen, 1.0)

    def having_data(self, share: Ratio) -> Bounds:
        """The same if this share of a step is data: the rest of the step is divided as it was."""
        traced = next((free.free_ratio for free in self.resources if free.resource == "data"), 1.0)
        rest = (1 - share) / traced if traced else 0.0
        resources = [
            FreeResource(
                resource=free.resource,
                free_ratio=1 - share if free.resource == "data" else 1 - rest * (1 - free.free_ratio),
                changed_ratio=1 - share if free.resource == "data" else 1 - rest * (1 - free.changed_ratio),
            )
            for free in self.resources
        ]
        return bounds_of(resources, min(1.0, rest * self.unexplained))


def bounds_of(resources: list[FreeResource], unexplained: Ratio) -> Bounds:
    """What bounds a run whose resources were tried.

    >>> tried = [FreeResource(resource="data", free_ratio=0.6, changed_ratio=0.6)]
    >>> bounds_of(tried, 0.1).bound, bounds_of(tried, 0.6).bound
    ('data', 'unrecorded')
    """
    ordered = sorted(resources, key=lambda free: free.free_ratio)
    able = [free for free in ordered if free.free_ratio * HELPS <= 1]
    bound: Bound = min(able, key=lambda free: free.changed_ratio).resource if able else "balanced"
    return Bounds(
        bound="unrecorded" if unexplained > MOSTLY else bound, resources=ordered, unexplained=unexplained
    )


METHOD = (
    "replay of the dependency graph; delays without a recorded cause stay as long as they were, and the interval "
    "also holds the ratio without them"
)


class Change(Record, frozen=True, kw_only=True):
    """A part of the program that takes less time.

    >>> Change(kind="kernel", pattern="gemm", speedup=2.0).speedup
    2.0
    """

    kind: Annotated[
        str,
        doc(
            "kernel, copy, collective, call, python, host: these events; op, line, module, span, data: all that runs "
            "within these, with its device work; sync: calls that wait, which then do not; gap: host time between "
            "events, or with nothing but an annotation; launch: calls that start device work, and the delay until it starts"
        ),
    ]
    name: Annotated[str | None, doc("exact name of the events; of a line `file.py:12` too")] = None
    pattern: Annotated[str | None, doc("or a regular expression; with neither, all of the kind")] = None
    speedup: Annotated[float | None, doc("how many times faster; null takes no time at all")] = None


class WhatIf(Record, frozen=True, kw_only=True):
    """A prediction: how long the run would be under some changes, on the same machine and in the same order."""

    changes: list[Change]
    span_ns: Annotated[int, doc("as recorded")]
    new_span_ns: int
    gain_ns: int
    ratio: Annotated[float, doc("new over old; 1 is no change")]
    ratio_low: float
    ratio_high: float
    touched_ns: Annotated[int, doc("recorded time that the changes shorten, summed over threads and streams")]
    method: str = METHOD
    notes: Annotated[list[str], doc("what was inferred because the trace does not tell")] = []


class Recoverable(Record, frozen=True, kw_only=True):
    """One change and what it would bring."""

    name: Annotated[str, doc("what is changed")]
    what: Annotated[str, doc("the change in words")]
    kind: Annotated[
        str, doc("kernel, op, line, module, copy, call, collective, data, launch, sync or update")
    ]
    speedup: Annotated[float | None, doc("how many times faster; null takes no time at all")] = None
    gain_ns: Annotated[int, doc("how much shorter the span would be")]
    added_ns: Annotated[int, doc("what it adds to those above it in the list; these sum to the joint gain")]
    critical_ns: Annotated[
        int, doc("its recorded time on the critical path; of waiting calls, the time that they waited")
    ]
    ratio: Annotated[float, doc("new over old span")]
    ratio_low: float
    ratio_high: float
    where: Annotated[Place, doc("place of the longest occurrence")] = Place()
    method: str = METHOD
