"""The memory of one program: what `profile_memory` found out."""

from __future__ import annotations

from typing import Annotated

from pyrometer.advice import Advice
from pyrometer.memory.place import HeldBytes
from pyrometer.memory.timeline import Timeline
from pyrometer.quantity import Bytes, Ratio
from pyrometer.record import Record, doc


class PredictedMemory(Record, frozen=True, kw_only=True):
    """The same step on tensors without data."""

    peak_bytes: Bytes
    ledger_bytes: Annotated[dict[str, Bytes], doc("by category; they add up to peak_bytes")]
    error: Annotated[float | None, doc("predicted over measured peak, minus one; null when not measured")] = (
        None
    )
    peak_phase: Annotated[str | None, doc("the phase in which the peak falls")] = None
    settings: Annotated[dict[str, str], doc("what differs from the program as written: batch, dtype, …")] = {}
    notes: Annotated[list[str], doc("what could not be predicted, and why")] = []
    tensor_peak_bytes: Annotated[
        Bytes | None, doc("the peak of tensors alone, without what operators take for themselves")
    ] = None
    phase_peaks_bytes: Annotated[dict[str, Bytes], doc("the most within each phase")] = {}
    reserved_bytes: Annotated[
        Bytes | None, doc("what CUDA's allocator would take; null where it is not emulated")
    ] = None
    fits: Annotated[bool | None, doc("whether it fits the budget; null without one")] = None
    at_peak: Annotated[list[HeldBytes], doc("what holds the peak, the largest first")] = []
    from_real_steps: Annotated[bool, doc("real steps were run, because the program needs values")] = False


class ScalingLaw(Record, frozen=True, kw_only=True):
    """How a category grows with the batch and the sequence."""

    category: str
    law: Annotated[str, doc("in words and letters, such as 'grows with B·T: 3.1 MiB per sample of 128'")]
    coefficients: Annotated[dict[str, float], doc("bytes per term: 1, B, T, B·T, B·T²")] = {}
    worst_error: Annotated[Ratio | None, doc("largest relative miss of the fit over the points tried")] = None
    remedy: Annotated[str | None, doc("what lowers just this")] = None


class Fit(Record, frozen=True, kw_only=True):
    """The largest batch for a memory size."""

    budget_bytes: Bytes
    max_batch: Annotated[
        int | None, doc("null when not even one sample fits, or nothing grows with the batch")
    ]
    peak_bytes: Annotated[
        Bytes | None, doc("predicted at that batch, or at every one where nothing grows with the batch")
    ] = None
    verified: Annotated[bool, doc("that batch was rehearsed and fits, the next one was and does not")] = False
    is_capped: Annotated[bool, doc("larger batches were not looked for: at least that one fits")] = False


class ProcessLevels(Record, frozen=True, kw_only=True):
    """Memory of the process and the device as others see it; kept apart from the ledger."""

    rss_start_bytes: Bytes | None = None
    rss_peak_bytes: Bytes | None = None
    allocated_peak_bytes: Annotated[Bytes | None, doc("of torch's allocator on the device")] = None
    reserved_peak_bytes: Annotated[Bytes | None, doc("what torch's allocator took from the device")] = None
    pinned_bytes: Annotated[Bytes | None, doc("page-locked host memory; null where torch does not tell")] = (
        None
    )
    device_used_bytes: Annotated[Bytes | None, doc("used on the device by all processes")] = None
    device_total_bytes: Bytes | None = None


class WholeRun(Record, frozen=True, kw_only=True):
    """The peak of all steps of a script, of which only the first were recorded in detail."""

    peak_bytes: Annotated[
        Bytes,
        doc("that of the recorded steps, unless a later reading exceeds it by more than the resolution"),
    ]
    peak_step: Annotated[
        int | None, doc("the step in which it falls, from 1; null for the recorded ones")
    ] = None
    peak_phase: Annotated[
        str | None, doc("what ran then, or between which phases; null for the recorded steps")
    ] = None
    num_steps: Annotated[int, doc("that were read, the recorded ones among them")]
    recorded_steps: Annotated[int, doc("that were recorded in detail")]
    is_transient: Annotated[
        bool, doc("it came and went between two readings, and is about so high by what the process gave back")
    ] = False
    resolution_bytes: Annotated[
        Bytes, doc("by which a later peak must be higher than the recorded one to be told")
    ]
    source: Annotated[str, doc("what was read wherever a phase began or ended")]


class LeakSite(Record, frozen=True, kw_only=True):
    """One place whose allocations stay."""

    file: str | None
    line: int | None
    holder: Annotated[str | None, doc("what holds them, as a user would write it; null when not found")]
    graph_bytes: Annotated[Bytes, doc("kept alive by the autograd graph behind them")] = 0
    bytes_per_step: float = 0.0
    source: Annotated[str | None, doc("the allocating line's text")] = None
    operator: str | None = None
    module: str | None = None
    holder_place: Annotated[str | None, doc("file:line of what holds it, where known")] = None
    root: Annotated[
        str | None,
        doc(
            "what kind of thing keeps it: module global, frame local, closure, instance attribute, reference cycle, …; "
            "null when not found"
        ),
    ] = None
    container: Annotated[str | None, doc("type and length of the container, such as 'list of 37'")] = None
    chain: Annotated[list[str], doc("from the root to the tensor, hop by hop")] = []
    graph_state: Annotated[str | None, doc("alive, shell, hooked or none")] = None
    period: Annotated[
        float | None, doc("steps per leaked step: 1 when each step leaks, 7 when every seventh")
    ] = None
    fix: Annotated[str | None, doc("what to write instead")] = None
    graph_nodes: Annotated[int, doc("nodes of the autograd graph behind one of the tensors")] = 0
    nodes_per_step: Annotated[float, doc("by which a graph grows that is never let go")] = 0.0
    kind: Annotated[
        str,
        doc(
            "leak; cache: grows with its keys; slowing: ever more slowly; bounded: up to a limit not yet reached; "
            "open: the program may let it go, and did not yet"
        ),
    ] = "leak"
    operators: Annotated[int, doc("how many lines and operators made what is kept here")] = 1


UNDECIDED_GROWTH = "growing, not decidable yet"
"""The verdict on what grows and may have an end that is not reached yet."""


class LeakReport(Record, frozen=True, kw_only=True):
    """Whether memory grows without end, and who holds it."""

    verdict: Annotated[
        str, doc("leak, growing cache, allocator warm-up, stable, undecided, or: growing, not decidable yet")
    ]
    sentence: str
    unbounded: Annotated[bool, doc("memory grows, and nothing that is known ends it")] = False
    bytes_per_step: Annotated[float, doc("growth of live tensor bytes per step, once warm")] = 0.0
    ci: Annotated[list[float], doc("interval of bytes_per_step: low, high")] = []
    sites: Annotated[list[LeakSite], doc("the largest first")] = []
    eta_steps: Annotated[float | None, doc("steps until memory is full; null without growth or limit")] = None
    limit_bytes: Annotated[Bytes | None, doc("the memory that eta_steps is meant against")] = None
    num_steps: int = 0
    warmup_steps: int = 0
    false_alarm_rate: Annotated[float | None, doc("stated for the rule that was used")] = None
    overhead_share: Annotated[float | None, doc("what watching added to a step")] = None
    steps: Annotated[list[int], doc("step numbers of the series")] = []
    live_bytes: Annotated[list[Bytes], doc("live tensor bytes after these steps")] = []
    notes: list[str] = []


class MemoryProfile(Record, frozen=True, kw_only=True):
    """Bytes by category and by site over time; the ledger at the peak."""

    name: str
    device: str
    config: Annotated[str, doc("the variant, in words")] = "as written"
    source: Annotated[
        str, doc("how it was obtained: every operator, the allocator's events, or predicted")
    ] = ""
    peak_bytes: Annotated[Bytes, doc("most that was alive at one instant of the recorded steps")]
    peak_phase: Annotated[str | None, doc("the phase in which the peak falls")] = None
    peak_step: Annotated[int, doc("the recorded step in which it falls, from 0")] = 0
    ledger_bytes: Annotated[dict[str, Bytes], doc("at the peak, by category; they add up to peak_bytes")]
    whole_run: Annotated[
        WholeRun | None, doc("of a script: the peak of all its steps; null where all of it was recorded")
    ] = None
    steady_bytes: Annotated[Bytes | None, doc("alive after the last recorded step")] = None
    unit: str = "samples"
    units_per_step: float | None = None
    bytes_per_unit: Annotated[float | None, doc("peak_bytes over units_per_step")] = None
    units_per_gib: Annotated[float | None, doc("memory efficiency: effective batch over peak memory")] = None
    predicted: Annotated[PredictedMemory | None, doc("the same step predicted without running it")] = None
    timeline: Timeline = Timeline()
    at_peak: Annotated[
        list[HeldBytes], doc("what holds the peak, by line and module, the largest first")
    ] = []
    by_module: Annotated[dict[str, Bytes], doc("at the peak")] = {}
    by_operator: Annotated[dict[str, Bytes], doc("at the peak")] = {}
    by_dtype: Annotated[dict[str, Bytes], doc("at the peak")] = {}
    levels: ProcessLevels = ProcessLevels()
    formulas: Annotated[
        dict[str, str], doc("the rules of thumb that users know, with this program's figures")
    ] = {}
    scaling: list[ScalingLaw] = []
    fits: list[Fit] = []
    leak: LeakReport | None = None
    advice: list[Advice] = []
    notes: Annotated[list[str], doc("what could not be told, and why")] = []
    interrupted: Annotated[bool, doc("whether Ctrl-C ended it; what was found until then is kept")] = False

    @property
    def highest_bytes(self) -> Bytes:
        """The peak of all that has run: of the recorded steps, or of a later one."""
        return max(self.peak_bytes, self.whole_run.peak_bytes if self.whole_run is not None else 0)
