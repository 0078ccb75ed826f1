"""What a program is like from a cold start, and over a long run."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.bench.quality import Caveat
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc

STAGES = ("python_s", "import_s", "load_s", "first_call_s", "total_s", "steady_s")


class ColdStart(Record, frozen=True, kw_only=True):
    """One start, from the request for a process to its first result."""

    python_s: Annotated[Seconds, doc("until the interpreter runs our code")]
    import_s: Annotated[Seconds, doc("import torch")]
    load_s: Annotated[Seconds, doc("import the target, call its factory, prepare the step")]
    first_call_s: Annotated[Seconds, doc("the first step, compilation included")]
    total_s: Annotated[Seconds, doc("all of these together")]
    steady_s: Annotated[Seconds, doc("median of steps 21 to 40, or of the later half of what 2 s allow")]


class StageTime(Record, frozen=True, kw_only=True):
    """One stage over all starts but the first."""

    name: Annotated[str, doc("the field of a start")]
    median_s: Seconds
    min_s: Seconds
    max_s: Seconds
    ci_low_s: Annotated[Seconds | None, doc("interval of the median; null for fewer than six starts")] = None
    ci_high_s: Seconds | None = None


class ColdStarts(Record, frozen=True, kw_only=True):
    """Cold starts in fresh processes."""

    first: Annotated[ColdStart, doc("the first process, which found inductor's cache empty")]
    later: Annotated[list[ColdStart], doc("the others, which found what the first had left in the caches")]
    stages: Annotated[list[StageTime], doc("each stage over the later starts; empty when there are none")]
    confidence: Annotated[float, doc("coverage of the intervals")] = 0.95
    interrupted: Annotated[bool, doc("whether Ctrl-C ended it; the starts before are kept")] = False


Trend = Literal["rising", "falling", "flat", "undecided"]


class Window(Record, frozen=True, kw_only=True):
    """One stretch of a long run."""

    start_s: Annotated[Seconds, doc("since the end of the warm-up")]
    end_s: Seconds
    num_samples: int
    p50_s: Seconds
    p99_s: Annotated[Seconds, doc("of at most 4,096 samples, drawn evenly from the window")]
    memory_bytes: Annotated[Bytes, doc("at the end of the window")]


class Drift(Record, frozen=True, kw_only=True):
    """The slope of a figure over the windows."""

    per_hour: Annotated[float, doc("share per hour for latency, bytes per hour for memory")]
    ci_low: Annotated[float | None, doc("null where the windows are too alike to bound it")]
    ci_high: float | None
    change: Annotated[float, doc("over the whole run, in the same unit")]
    trend: Annotated[Trend, doc("undecided when the run was too short for its noise")]


class Soak(Record, frozen=True, kw_only=True):
    """A long run."""

    asked_s: Annotated[Seconds, doc("how long it should have run")]
    elapsed_s: Annotated[Seconds, doc("how long it ran, without the warm-up")]
    num_steps: int
    steps_per_sample: Annotated[int, doc("steps timed together; above 1 the P99 are of means of so many")]
    windows: Annotated[list[Window], doc("at most 120")]
    latency: Annotated[Drift | None, doc("of the medians of the windows; null for fewer than eight windows")]
    tail: Annotated[Drift | None, doc("of their P99")]
    memory: Annotated[Drift | None, doc("null for fewer than eight windows")]
    memory_source: str
    confidence: Annotated[float, doc("coverage of the intervals of the slopes")] = 0.99
    interrupted: Annotated[bool, doc("whether Ctrl-C ended it; what was measured is kept")] = False
    failure: Annotated[str | None, doc("what stopped the workload")] = None
    caveats: list[Caveat] = []
