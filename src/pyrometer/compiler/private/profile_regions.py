"""What torch.profiler shows of compiled code: which compilation ran, for how long, and what stood before it.

| range | meaning | where from |
|---|---|---|
| `Torch-Compiled Region: 0/1` | one call of the compilation 0/1 | Dynamo, around the compiled code |
| `## Call CompiledFxGraph <key> ##` | Inductor's code; the key is that of its cache | Inductor; not for graphs kept out of the cache |
| `TorchDynamo Cache Lookup` | guards until one compilation fits | Dynamo |
| `Pregraph bytecode`, `AOTDispatcher Runtime Wrapper Prologue` | what runs before the graph | Dynamo, AOTAutograd |
| `CompiledFunction`, `CompiledFunctionBackward` | AOTAutograd's graph and its backward; both bear the same sequence number | autograd |

The names are read by profilers' users and by torch's own tests, but promised nowhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from pyrometer.quantity import Seconds

REGION = re.compile(r"Torch-Compiled Region: (?P<id>\S+)")
GRAPH = re.compile(r"## Call CompiledFxGraph (?P<key>\S+) ##")
LOOKUP = "TorchDynamo Cache Lookup"
WRAPPERS = ("Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue")
FORWARD, BACKWARD = "CompiledFunction", "CompiledFunctionBackward"
HICCUP = 5.0


class Range(NamedTuple):
    """A named stretch of time on one thread."""

    name: str
    start_us: float
    end_us: float
    thread: int = 0
    sequence: int = -1
    """Joins a function of autograd with its backward; -1 where there is none."""

    @property
    def seconds(self) -> Seconds:
        """How long it took."""
        return (self.end_us - self.start_us) * 1e-6


@dataclass
class Region:
    """The calls of one compilation."""

    own: list[Seconds] = field(default_factory=list)
    """Of each call, without the regions inside of it: what follows a graph break runs inside of the part before."""
    backward: list[Seconds] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    """Cache keys of Inductor's graphs that it called, the forward ones."""

    @property
    def calls(self) -> int:
        """How often it was called."""
        return len(self.own)

    @property
    def own_s(self) -> Seconds:
        """All calls, hiccups of the machine capped."""
        return capped_sum(self.own)

    @property
    def backward_s(self) -> Seconds:
        """All backwards, hiccups of the machine capped."""
        return capped_sum(self.backward)


@dataclass
class Regions:
    """Compiled code in one recording."""

    by_id: dict[str, Region]
    """By compile ids as torch writes them."""
    backward_by_key: dict[str, Seconds]
    """Inductor's graphs outside of any region and of any known function of autograd, by cache key."""
    lookup_s: Seconds | None
    wrapper_s: Seconds | None


def ranges_of(profiler: Any) -> list[Range]:
    """The ranges on the host that have to do with compiled code, of a profiler that has stopped."""
    from torch.autograd import DeviceType  # type: ignore[attr-defined]

    return [
        Range(
            event.name,
            event.time_range.start,
            event.time_range.end,
            event.thread,
            getattr(event, "sequence_nr", -1),
        )
        for event in profiler.events()
        if event.device_type == DeviceType.CPU and _is_told(event.name)
    ]


def busy_share(profiler: Any) -> float | None:
    """Share of the recording in which something ran on a device; `None` where nothing ever did."""
    from torch.autograd import DeviceType  # type: ignore[attr-defined]

    events = list(profiler.events())
    work = sorted(
        (event.time_range.start, event.time_range.end)
        for event in events
        if event.device_type != DeviceType.CPU
    )
    if not work:
        return None
    covered, reached = 0.0, work[0][0]
    for start, end in work:
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    first = min(event.time_range.start for event in events)
    last = max(event.time_range.end for event in events)
    return min(covered / (last - first), 1.0) if last > first else None


def read_regions(ranges: Iterable[Range]) -> Regions:
    """Put ranges of one recording together by compilation.

    >>> regions = read_regions([Range("Torch-Compiled Region: 0/0", 0, 9), Range("Torch-Compiled Region: 1/0", 2, 5)])
    >>> {name: round(region.own_s * 1e6) for name, region in regions.by_id.items()}
    {'0/0': 6, '1/0': 3}
    """
    gathering = _Gathering()
    for span, around in _nested(ranges):
        gathering.take(span, around)
    lookups, wrappers = gathering.lookups, gathering.wrappers
    return Regions(
        gathering.regions(),
        {key: capped_sum(spent) for key, spent in gathering.backward.items()},
        capped_sum(lookups) if lookups else None,
        sum(map(capped_sum, wrappers.values())) if wrappers else None,
    )


def capped_sum(durations: Sequence[Seconds]) -> Seconds:
    """Their sum, in which none counts for more than five medians: a thread that was put aside says nothing of the code.

    >>> capped_sum([1.0, 1.0, 2.0, 400.0])
    11.5
    """
    if not durations:
        return 0.0
    most = HICCUP * median(durations)
    return sum(min(duration, most) for duration in durations)


class _Gathering:
    """Takes the ranges of one recording, one after the other."""

    def __init__(self) -> None:
        self.backward = defaultdict[str, list[Seconds]](list)
        self.lookups: list[Seconds] = []
        self.wrappers = defaultdict[str, list[Seconds]](list)
        self._by_id = defaultdict[str, Region](Region)
        self._own: dict[Range, Seconds] = {}
        self._owners: dict[int, str] = {}

    def regions(self) -> dict[str, Region]:
        """By compile id; to be asked for at the end."""
        for span, own_s in self._own.items():
            self._by_id[_id_of(span) or ""].own.append(own_s)
        return dict(self._by_id)

    def take(self, span: Range, around: list[Range]) -> None:
        """The next range with those around it."""
        inner, graph = _innermost(around), GRAPH.match(span.name)
        if _id_of(span) is not None:
            self._own[span] = span.seconds
            if inner is not None:
                self._own[inner] -= span.seconds
        elif graph is not None:
            self._take_graph(span, graph["key"], around)
        elif span.name == FORWARD and inner is not None and span.sequence >= 0:
            self._owners[span.sequence] = _id_of(inner) or ""
        elif span.name == BACKWARD and span.sequence in self._owners:
            self._by_id[self._owners[span.sequence]].backward.append(span.seconds)
        elif span.name == LOOKUP:
            self.lookups.append(span.seconds)
        elif span.name in WRAPPERS:
            self.wrappers[span.name].append(span.seconds)

    def _take_graph(self, span: Range, key: str, around: list[Range]) -> None:
        inner = _innermost(around)
        if inner is not None:
            keys = self._by_id[_id_of(inner) or ""].keys
            if key not in keys:
                keys.append(key)
        elif not any(outer.name == BACKWARD and outer.sequence in self._owners for outer in around):
            self.backward[key].append(span.seconds)


def _is_told(name: str) -> bool:
    return name in {LOOKUP, FORWARD, BACKWARD, *WRAPPERS} or any(
        shape.match(name) is not None for shape in (REGION, GRAPH)
    )


def _nested(ranges: Iterable[Range]) -> Iterator[tuple[Range, list[Range]]]:
    """Every range with those around it on its thread, the outermost first; by start."""
    open_by_thread = defaultdict[int, list[Range]](list)
    for span in sorted(ranges, key=lambda one: (one.start_us, -one.end_us)):
        around = open_by_thread[span.thread]
        while around and around[-1].end_us <= span.start_us:
            around.pop()
        yield span, around
        around.append(span)


def _innermost(around: list[Range]) -> Range | None:
    """The compiled region around; a backward that runs inside of one belongs to another."""
    for outer in reversed(around):
        if _id_of(outer) is not None:
            return outer
        if outer.name == BACKWARD:
            return None
    return None


def _id_of(span: Range) -> str | None:
    match = REGION.match(span.name)
    return None if match is None else match["id"]
