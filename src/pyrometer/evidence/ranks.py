"""Observing a script on many ranks: each as a script alone, their traces beside each other."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyrometer.bench.measurement import Measurement
from pyrometer.evidence.data_share import measured_share
from pyrometer.evidence.evidence import Evidence
from pyrometer.evidence.launch_outcome import LaunchOutcome, RankOutcome, leading_rank
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.observers.trace import OPTIONS, with_trace
from pyrometer.evidence.options import ObserveOptions
from pyrometer.evidence.script import SCRIPT_STEPS, measured, outcome_of
from pyrometer.hardware.conditions import ConditionsProbe
from pyrometer.hardware.environment import read_environment
from pyrometer.redaction import redacted_argv
from pyrometer.trace.capture.script import TracedScript, trace_of
from pyrometer.trace.reading.read import numbered
from pyrometer.trace.trace import Trace
from pyrometer.workload.ranks.launch import (
    Launched,
    LaunchedRank,
    launch,
    launch_here,
    meeting_place,
    prepare,
)
from pyrometer.workload.ranks.rank import run_rank
from pyrometer.workload.ranks.record import Stall
from pyrometer.workload.ranks.stalls import HANG_AFTER_S
from pyrometer.workload.ranks.world import World
from pyrometer.workload.script.observe import require_script
from pyrometer.workload.script.observed import TraceRequest

SKIPPED_STEPS = 3


def request() -> TraceRequest:
    """What each rank is asked to trace: the same steps, so that their collectives meet."""
    return TraceRequest(
        path="",
        steps=SCRIPT_STEPS,
        skip=SKIPPED_STEPS,
        modules=OPTIONS.with_modules,
        options=OPTIONS.for_profiler,
    )


def observe_ranks(
    argv: list[str],
    num_ranks: int,
    options: ObserveOptions,
    *,
    hang_after_s: float = HANG_AFTER_S,
    tell: Callable[[Stall], None] = lambda _stall: None,
) -> Observed:
    """Run a script unchanged on ranks of this machine under torchrun, trace a few steps on each, and gather them.

    Args:
        argv: the script and its arguments.
        num_ranks: how many.
        options: where peaks are kept, and the confidence of intervals.
        hang_after_s: ask the ranks where they are when one has not moved for so long.
        tell: called with each stall while the script runs.

    Raises:
        TargetError: the script cannot be read.
    """
    require_script(argv)
    with tempfile.TemporaryDirectory(prefix="pyrometer-") as folder, ConditionsProbe() as probe:
        prepare(Path(folder), request())
        launched = launch(argv, num_ranks, Path(folder), hang_after_s=hang_after_s, tell=tell)
        return gather(launched, options, probe)


def observe_rank(
    argv: list[str],
    world: World,
    options: ObserveOptions,
    shared: Path | None = None,
    *,
    hang_after_s: float = HANG_AFTER_S,
    tell: Callable[[Stall], None] = lambda _stall: None,
) -> Observed | int:
    """Run a script unchanged as one rank of a job that a launcher started; rank 0 gathers what all have seen.

    Args:
        argv: the script and its arguments.
        world: which rank this is.
        options: where peaks are kept, and the confidence of intervals.
        shared: a folder that all ranks see; without it they must be on one machine.
        hang_after_s: ask the ranks where they are when one has not moved for so long.
        tell: called on rank 0 with each stall.

    Returns:
        What was observed on rank 0; on the others the script's exit code.

    Raises:
        TargetError: the script cannot be read.
        InputError: the folder cannot be written to.
    """
    require_script(argv)
    folder = meeting_place(world, shared)
    prepare(folder, request())
    if world.rank:
        return run_rank(world, folder, argv)
    with ConditionsProbe() as probe:
        launched = launch_here(argv, world, folder, hang_after_s=hang_after_s, tell=tell)
        try:
            return gather(launched, options, probe)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def gather(launched: Launched, options: ObserveOptions, probe: ConditionsProbe) -> Observed:
    """What the ranks of a job that has ended tell together; where one rank is told, it is the leading one."""
    name = Path(launched.argv[0]).name
    traced = {rank.rank: _traced(rank) for rank in launched.ranks}
    measurements = {
        rank: measured(one.observed, name, probe.conditions, options) for rank, one in traced.items()
    }
    evidence = Evidence(target=shlex.join(redacted_argv(launched.argv)), environment=read_environment())
    seen = Observed(evidence=evidence, interrupted=launched.ended.interrupted)
    parts = [one.trace for one in traced.values() if one.trace is not None]
    if parts:
        joined = Trace(tuple(part.ranks[0] for part in parts), capture=parts[0].capture)
        seen = with_trace(seen, joined, options.peaks_folder)
    ranks = [_outcome(rank, traced[rank.rank], measurements[rank.rank]) for rank in launched.ranks]
    leading = leading_rank(ranks, seen.evidence.trace_verdict)
    if leading is None:
        return seen.having(launch=LaunchOutcome(num_ranks=launched.num_ranks, ranks=[], leading=None))
    report = next((one for one in seen.evidence.ranks if one.rank == leading), seen.evidence.trace)
    return seen.having(
        measurement=measurements[leading],
        trace=report,
        script=outcome_of(traced[leading].observed),
        launch=LaunchOutcome(
            num_ranks=launched.num_ranks,
            ranks=ranks,
            leading=leading,
            stalls=launched.stalls,
            restarts=max((rank.end.restarts for rank in launched.ranks if rank.end is not None), default=0),
        ),
    )


def _traced(launched: LaunchedRank) -> TracedScript:
    """A rank with its trace, which bears the number that the launcher gave it, also where no process group was made."""
    target = Path(launched.request.path).with_name("trace.json")
    read = trace_of(launched.observed, target, launched.request, OPTIONS)
    if read.trace is None:
        return read
    renumbered = numbered(read.trace.ranks[0], launched.rank, "launcher")
    return replace(read, trace=replace(read.trace, ranks=(renumbered,)))


def _outcome(rank: LaunchedRank, traced: TracedScript, measurement: Measurement | None) -> RankOutcome:
    observed = traced.observed
    data = measured_share(measurement)
    return RankOutcome(
        rank=rank.rank,
        host=None if rank.end is None else rank.end.host,
        exit_code=observed.exit_code,
        num_steps=len(observed.step_ns),
        step_s=None if measurement is None else measurement.median_s,
        data_share=None if data is None else data.share,
        peak_bytes=observed.peak_bytes,
        allocated_peak_bytes=observed.allocated_peak_bytes,
        micro_batch=observed.micro_batch,
        accumulation=observed.accumulation,
        is_traced=traced.trace is not None,
    )
