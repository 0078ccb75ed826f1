"""Records of what only running shows."""

from __future__ import annotations

from typing import Annotated

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.quality import Caveat
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc


class GraphRuntime(Record, frozen=True, kw_only=True):
    """How much one compilation is used."""

    compile_id: str
    calls: Annotated[int, doc("in the steps that were profiled")]
    total_s: Annotated[
        Seconds,
        doc(
            "inside the compiled region and its backward, on the host, without compiled regions inside of it"
        ),
    ]
    calls_per_step: float
    mean_s: Seconds
    share: Annotated[float, doc("of the time of all compiled regions")]
    cache_key: str = ""
    compile_s: Annotated[Seconds | None, doc("what it took to compile")] = None
    pays: Annotated[
        bool | None,
        doc(
            "whether its calls save its compile time over a run of `run_steps` steps like these, when what a step spares is "
            "shared among its graphs by their time; false if never called; null if unknown"
        ),
    ] = None
    break_even_calls: Annotated[
        int | None, doc("calls that save its compile time, by the same rule; null if none do, or unknown")
    ] = None
    backward_s: Annotated[
        Seconds | None, doc("part of total_s in the graph of its backward; null without one")
    ] = None


class SilentEager(Record, frozen=True, kw_only=True):
    """Calls that fit no compilation and were run eagerly without a word."""

    function: str
    file: str
    line: int
    calls: int
    failing: Annotated[list[str], doc("the guards that failed")]


class Runtime(Record, frozen=True, kw_only=True):
    """What steady steps showed: a few under the profiler, and calls that ran eagerly without a word."""

    num_steps: Annotated[
        int, doc("steps under the profiler; 0 where there could be none, as beside another profiler")
    ] = 0
    profiled_step_s: Annotated[
        Seconds | None,
        doc("mean step under the profiler, which makes steps longer; times of graphs are parts of it"),
    ] = None
    num_recordings: Annotated[
        int,
        doc("recordings of so many steps each; all that is told is of the one whose mean step is the median"),
    ] = 1
    graphs: list[GraphRuntime] = []
    lookup_s: Annotated[
        Seconds | None, doc("per step: looking for the compilation that fits, guards included")
    ] = None
    wrapper_s: Annotated[
        Seconds | None, doc("per step: AOTAutograd's wrappers and bytecode before the graph")
    ] = None
    silent_eager: list[SilentEager] = []
    run_steps: Annotated[int, doc("length of the run that `pays` is told for")] = 1000
    verdict: Annotated[
        Verdict | None, doc("compiled against eager steps, in turn; null where they were not compared")
    ] = None

    @property
    def dispatch_s(self) -> Seconds | None:
        """Per step: all that stands before compiled code; `None` where the profile does not show it."""
        parts = [part for part in (self.lookup_s, self.wrapper_s) if part is not None]
        return sum(parts) if parts else None


class ModeResult(Record, frozen=True, kw_only=True):
    """The workload in one mode of torch.compile, against eager."""

    mode: str
    latency_s: Seconds | None = None
    p99_over_mean: Annotated[float | None, doc("jitter")] = None
    throughput_per_s: float | None = None
    peak_bytes: Bytes | None = None
    device_utilization: Annotated[
        float | None, doc("share of time with work on the device; null on a CPU")
    ] = None
    compile_s: Seconds | None = None
    artifact_bytes: Bytes | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    cosine: float | None = None
    outcome: Annotated[
        str, doc("faster, slower, same or undecided, paired with eager; reference for eager; failed")
    ] = "undecided"
    ratio: Annotated[float | None, doc("new over old time")] = None
    ci_low: float | None = None
    ci_high: float | None = None
    break_even_steps: int | None = None
    failure: Annotated[str | None, doc("why there is no figure")] = None


class Evaluation(Record, frozen=True, kw_only=True):
    """Eager against modes, in one table."""

    modes: list[ModeResult]
    best: Annotated[str, doc("the mode to use; eager when nothing was shown to be faster")]
    sentence: Annotated[str, doc("the verdict in one line")]
    caveats: Annotated[
        list[Caveat], doc("what the machine did besides while modes were measured, each once")
    ] = []
    elapsed_s: Annotated[Seconds | None, doc("all of it, compiling included; null if not told")] = None
    interrupted: Annotated[bool, doc("whether Ctrl-C ended it; modes that were done are kept")] = False
