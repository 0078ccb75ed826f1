"""`CompileReport`: what torch.compile did with one program."""

from __future__ import annotations

from typing import Annotated

from pyrometer.advice import Advice
from pyrometer.bench.matrix.cell import OutputError
from pyrometer.compiler.advice.record import RewriteTrial
from pyrometer.compiler.breaks.record import Break, SkippedFrame
from pyrometer.compiler.costs.record import (
    CacheSummary,
    Compilation,
    CompileCost,
    GeneratedCode,
    KernelOrigin,
    PassEffect,
)
from pyrometer.compiler.fusion.record import Folding, FusedGroup, MemoryPlan, NotFused
from pyrometer.compiler.graphs.record import Graph
from pyrometer.compiler.inspection.record import Evaluation, Runtime
from pyrometer.compiler.recompiles.record import GuardSummary, LimitReached, Recompile, SymbolicSize
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class CompileReport(Record, frozen=True, kw_only=True):
    """Graphs, breaks, recompilations, guards, costs, fusions and caches of one program.

    A frame is a function that Dynamo looked at; it yields no graph (empty, or skipped) or one per compilation. A function
    with breaks leaves further frames, one for the rest behind each break.
    """

    as_written: Annotated[
        bool,
        doc(
            "false: the program compiles nothing by itself, and was put behind torch.compile for this report"
        ),
    ] = True
    failure: Annotated[
        str | None, doc("what a compiled step raised, where the program runs eagerly; null where none did")
    ] = None
    graphs: Annotated[int, doc("graphs that were compiled, over all compilations")]
    frames: Annotated[int, doc("distinct frames that were compiled or tried, rests behind breaks included")]
    skipped_frames: Annotated[int, doc("frames that were given up: they run eagerly, or raised")]
    breaks: list[Break]
    skips: Annotated[list[SkippedFrame], doc("the skipped frames")] = []
    recompiles: list[Recompile]
    limit_reached: Annotated[
        bool, doc("whether a frame hit the recompile limit and now runs eagerly in silence")
    ]
    limits: list[LimitReached] = []
    guards: GuardSummary
    symbols: Annotated[list[SymbolicSize], doc("sizes that were kept open")] = []
    cost: CompileCost
    passes: list[PassEffect] = []
    fusions: list[FusedGroup] = []
    not_fused: list[NotFused] = []
    not_fused_reasons: dict[str, int] = {}
    memory_plans: list[MemoryPlan] = []
    folded: list[Folding] = []
    layouts: dict[str, int] = {}
    cache: CacheSummary
    code: Annotated[list[GeneratedCode], doc("files that Inductor wrote")] = []
    origins: Annotated[list[KernelOrigin], doc("kernel, operators and user lines")] = []
    artifact_bytes: Annotated[Bytes, doc("size of the generated code")]
    error: Annotated[
        OutputError | None, doc("compiled against eager; null where it was not, or could not be, compared")
    ] = None
    compilations: list[Compilation] = []
    graph_records: Annotated[list[Graph], doc("the graphs themselves, stage by stage")] = []
    runtime: Annotated[
        Runtime | None,
        doc("null when no steady step ran, and no call is known to have run eagerly in silence"),
    ] = None
    evaluation: Annotated[Evaluation | None, doc("eager against modes, where that was asked for")] = None
    levers: Annotated[
        list[Advice],
        doc("changes to how it is compiled that the report gives reason to try; not measured"),
    ] = []
    trial: Annotated[RewriteTrial | None, doc("the advised rewrites, tried, where that was asked for")] = None
    incomplete: Annotated[
        list[str],
        doc(
            "functions that were compiled before the recording began: their graphs and breaks are not in this report"
        ),
    ] = []
    resets: Annotated[int, doc("times that torch._dynamo.reset() was called meanwhile")] = 0
    unavailable: Annotated[list[str], doc("what this torch, or this way of recording, does not tell")] = []
    notes: list[str] = []
    interrupted: Annotated[bool, doc("whether Ctrl-C ended it; what was compiled until then is told")] = False


class KeptBreak(Record, frozen=True, kw_only=True):
    """A break that both have."""

    before: Break
    after: Break


class CountChange(Record, frozen=True, kw_only=True):
    """A number that is not the same."""

    name: str
    before: int
    after: int


class FigureChange(Record, frozen=True, kw_only=True):
    """A measured figure; null where one side has none."""

    name: Annotated[str, doc("with its unit at the end: compile_s, phase.inductor_s")]
    before: float | None
    after: float | None


class CompileDiff(Record, frozen=True, kw_only=True):
    """What changed, `before` against `after`."""

    sentence: Annotated[str, doc("what changed, in one line")]
    changed: Annotated[bool, doc("whether anything but times, guards and cache hits differs")]
    breaks_added: list[Break] = []
    breaks_removed: list[Break] = []
    breaks_kept: list[KeptBreak] = []
    recompiles_added: list[Recompile] = []
    recompiles_removed: list[Recompile] = []
    skips_added: list[SkippedFrame] = []
    skips_removed: list[SkippedFrame] = []
    limits_added: Annotated[list[LimitReached], doc("functions that now hit the recompile limit")] = []
    limits_removed: list[LimitReached] = []
    counts: Annotated[
        list[CountChange],
        doc("graphs, frames, skipped_frames, operations, fused_groups, kernels; those that differ"),
    ] = []
    guards: Annotated[list[CountChange], doc("guards by type; those that differ")] = []
    fusions_added: Annotated[list[FusedGroup], doc("by the operators that they compute")] = []
    fusions_removed: list[FusedGroup] = []
    costs: Annotated[
        list[FigureChange], doc("seconds and bytes, one run on each side: what differs here may be chance")
    ] = []
    cache: Annotated[list[CountChange], doc("hits, misses and bypasses; those that differ")] = []
    cache_before: Annotated[
        str, doc("warm, cold, mixed or unused; times of unlike states do not compare")
    ] = ""
    cache_after: str = ""
    notes: list[str] = []
