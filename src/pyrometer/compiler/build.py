"""From a log to the report: every reader in turn, and what only running could tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import msgspec

from pyrometer.bench.matrix.cell import OutputError
from pyrometer.compiler.advice.advise import with_advice
from pyrometer.compiler.advice.fitting import fitting_levers
from pyrometer.compiler.breaks.frames import FrameCounts
from pyrometer.compiler.breaks.read import count_frames, read_breaks, read_skips
from pyrometer.compiler.costs.caches import read_cache
from pyrometer.compiler.costs.code import artifact_bytes, read_code, read_origins
from pyrometer.compiler.costs.compilations import read_compilations
from pyrometer.compiler.costs.cost import read_cost
from pyrometer.compiler.costs.passes import read_passes
from pyrometer.compiler.costs.record import CacheSummary, CompileCost
from pyrometer.compiler.fusion.read import read_fusion
from pyrometer.compiler.fusion.record import FusionReport
from pyrometer.compiler.graphs.groups import with_groups
from pyrometer.compiler.graphs.read import read_graphs
from pyrometer.compiler.inspection.record import Evaluation, Runtime
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.recompiles.guards import read_guards
from pyrometer.compiler.recompiles.read import read_limits, read_recompiles
from pyrometer.compiler.recompiles.record import GuardSummary
from pyrometer.compiler.recompiles.symbols import read_symbols
from pyrometer.compiler.report import CompileReport
from pyrometer.compiler.wording import listed
from pyrometer.compiler.wrappers import with_plain_names
from pyrometer.quantity import Seconds
from pyrometer.workload.failure import first_line

T = TypeVar("T")

NO_FRAMES = FrameCounts(graphs=0, frames=0, skipped=0)


def build_report(
    log: CompileLog,
    *,
    first_call_s: Seconds | None = None,
    steady_s: Seconds | None = None,
    eager_steady_s: Seconds | None = None,
    error: OutputError | None = None,
    runtime: Runtime | None = None,
    evaluation: Evaluation | None = None,
    incomplete: Iterable[str] = (),
    notes: Iterable[str] = (),
    unavailable: Iterable[str] = (),
    strict: bool = False,
) -> CompileReport:
    """Read everything that a log tells, and put it together.

    A reader that fails on something it has never met loses its own part only, which is then named in `unavailable`.

    Args:
        log: what the compiler said.
        first_call_s: the first step, compilation included.
        steady_s: median step once nothing is compiled any more.
        eager_steady_s: median step without torch.compile.
        error: compiled against eager outputs.
        runtime: steady steps under the profiler.
        evaluation: eager against modes.
        incomplete: functions that ran, but were compiled before the log began.
        notes: what readers of the report should know.
        unavailable: what could not be told, beside what the log itself says.
        strict: let the exceptions of readers pass, for tests.
    """
    earlier = list(incomplete)
    reading = _Reading(log, [*log.unavailable, *unavailable], strict)
    counts = reading.part("numbers of graphs and frames", count_frames, NO_FRAMES)
    breaks = reading.several("graph breaks", read_breaks)
    limits = with_plain_names(reading.several("recompile limits", read_limits))
    code = reading.several("generated code", read_code)
    origins = reading.several("origins of kernels", read_origins)
    fusion = reading.part("fusions", read_fusion, FusionReport())
    guards = reading.part("guards", read_guards, GuardSummary())
    cost_of = partial(read_cost, first_call_s=first_call_s, steady_s=steady_s, eager_steady_s=eager_steady_s)
    untold = CompileCost(first_call_s=first_call_s, steady_s=steady_s, eager_steady_s=eager_steady_s)
    report = CompileReport(
        graphs=counts.graphs,
        frames=counts.frames,
        skipped_frames=counts.skipped,
        breaks=reading.part("advice", lambda _: with_advice(breaks), breaks),
        skips=with_plain_names(reading.several("skipped frames", read_skips)),
        recompiles=with_plain_names(reading.several("recompilations", read_recompiles)),
        limit_reached=bool(limits),
        limits=limits,
        guards=guards,
        symbols=reading.several("symbolic sizes", read_symbols),
        cost=reading.part("costs", cost_of, untold),
        passes=reading.several("passes", read_passes),
        fusions=fusion.groups,
        not_fused=fusion.not_fused,
        not_fused_reasons=fusion.reasons,
        memory_plans=fusion.memory,
        folded=fusion.folded,
        layouts=fusion.layouts,
        cache=reading.part("caches", read_cache, CacheSummary()),
        code=code,
        origins=origins,
        artifact_bytes=artifact_bytes(code),
        error=error,
        compilations=with_plain_names(reading.several("compilations", read_compilations)),
        graph_records=reading.several("graphs", lambda log: with_groups(read_graphs(log), origins)),
        evaluation=evaluation,
        resets=max((compile_id.epoch for compile_id in log.compile_ids()), default=0),
        incomplete=earlier,
        notes=[*notes, *([_of_earlier(earlier)] if earlier else [])],
    )
    report = msgspec.structs.replace(report, levers=fitting_levers(report), unavailable=reading.unavailable())
    return report if runtime is None else with_runtime(report, runtime)


def with_runtime(report: CompileReport, runtime: Runtime) -> CompileReport:
    """The report with what steady steps showed; what they did not show to be faster is not said to be repaid."""
    cost = msgspec.structs.replace(report.cost, dispatch_s=runtime.dispatch_s)
    verdict = runtime.verdict
    if verdict is not None:
        cost = msgspec.structs.replace(
            cost,
            outcome=verdict.outcome,
            ratio=None if cost.eager_steady_s is None else verdict.ratio,
            ci_low=verdict.ci_low,
            ci_high=verdict.ci_high,
            break_even_steps=cost.break_even_steps if verdict.outcome == "faster" else None,
        )
    return msgspec.structs.replace(report, cost=cost, runtime=runtime)


def _of_earlier(functions: list[str]) -> str:
    return (
        f"compiled before the recording began: {listed(functions)}; their graphs and breaks are not in this report: "
        "record in a fresh process, or after torch._dynamo.reset()"
    )


class _Reading:
    """Calls readers, and keeps what failed."""

    def __init__(self, log: CompileLog, unavailable: list[str], strict: bool) -> None:
        self._log = log
        self._unavailable = unavailable
        self._strict = strict

    def several(self, what: str, read: Callable[[CompileLog], list[T]]) -> list[T]:
        """What a reader of many records returns; none where it fails."""
        return self.part(what, read, [])

    def part(self, what: str, read: Callable[[CompileLog], T], otherwise: T) -> T:
        """What a reader returns, or what stands for it."""
        try:
            return read(self._log)
        except Exception as error:
            if self._strict:
                raise
            self._unavailable.append(
                f"{what}: torch's log was not understood ({type(error).__name__}: {first_line(error)})"
            )
            return otherwise

    def unavailable(self) -> list[str]:
        """Everything that is not told, each once."""
        faults = self._log.num_faults
        unread = [f"{faults} entries of torch's log: they could not be read"] if faults else []
        return list(dict.fromkeys([*self._unavailable, *unread]))
